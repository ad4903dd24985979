// The ways a model is cut over ranks, by name and in sets.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace weft {

/// Layers see the ranks of a pipeline stage as tp times cp times dp, experts see the same ranks as etp times
/// ep times edp. pp is common to both.
enum class Axis : std::uint8_t { tp, cp, dp, etp, ep, edp, pp };
inline constexpr int axes = 7;

class Axes {
 public:
  constexpr Axes() = default;
  constexpr Axes(Axis a) : bits_(1u << unsigned(a)) {}
  constexpr Axes(std::initializer_list<Axis> list) {
    for (const Axis a : list) bits_ |= 1u << unsigned(a);
  }
  constexpr bool holds(Axis a) const { return (bits_ >> unsigned(a) & 1u) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr Axes operator|(Axes other) const { return Axes(bits_ | other.bits_, Bits::given); }
  constexpr Axes operator&(Axes other) const { return Axes(bits_ & other.bits_, Bits::given); }
  constexpr Axes operator-(Axes other) const { return Axes(bits_ & ~other.bits_, Bits::given); }
  constexpr auto operator<=>(const Axes&) const = default;

 private:
  enum class Bits : std::uint8_t { given };
  constexpr Axes(unsigned bits, Bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

/// "tp, pp"; "no axis" of none.
inline std::string names(Axes some) {
  constexpr std::array<const char*, axes> words{"tp", "cp", "dp", "etp", "ep", "edp", "pp"};
  std::string out;
  for (int a = 0; a < axes; ++a)
    if (some.holds(Axis(a))) out += (out.empty() ? "" : ", ") + std::string(words[std::size_t(a)]);
  return out.empty() ? "no axis" : out;
}

/// Who looks at the ranks of a stage.
enum class View : std::uint8_t { dense, experts };

/// Axes along which ranks hold different parts of a model, and those along which they hold the same and read
/// other samples, or other parts of them.
constexpr Axes model_axes(View view) {
  return view == View::dense ? Axes{Axis::tp, Axis::pp} : Axes{Axis::etp, Axis::ep, Axis::pp};
}
constexpr Axes data_axes(View view) {
  return view == View::dense ? Axes{Axis::dp, Axis::cp} : Axes{Axis::edp};
}
constexpr Axes axes_of(View view) { return model_axes(view) | data_axes(view); }

}  // namespace weft
