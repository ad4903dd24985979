// What a GGUF file says in front of its tensors: keys and values, in the file's order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weft::exchange::gguf {

/// By the numbers that files have for them.
enum class ValueType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  yes_or_no = 7,
  text = 8,
  list = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12
};
/// "a list"
std::string_view what_is(ValueType type);

struct Value {
  ValueType type = ValueType::u32;
  ValueType element = ValueType::u32;  // of a list
  std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>, std::vector<double>,
               std::vector<std::string>>
      held = std::int64_t{0};

  /// Null where it is something else. A list of yes and no is one of 0 and 1.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&held);
  }
};

Value whole(std::int64_t value);  // u32
Value real(double value);         // f32
Value yes(bool value);
Value text_of(std::string value);
Value words_of(std::vector<std::string> values);
Value wholes_of(std::vector<std::int64_t> values);   // i32
Value answers_of(std::vector<std::int64_t> values);  // of yes and no
Value reals_of(std::vector<double> values);          // f32

class Values {
 public:
  /// Null where there is none.
  const Value* find(std::string_view key) const;
  /// False where the key is there already, and nothing is added.
  bool add(std::string key, Value value);
  const std::vector<std::pair<std::string, Value>>& all() const { return all_; }

 private:
  std::vector<std::pair<std::string, Value>> all_;
  std::map<std::string, std::size_t, std::less<>> places_;
};

/// The decimal that a person would write for a number of single precision, as a double: 1e-5, not
/// 9.99999974738e-6.
double as_written(float value);

}  // namespace weft::exchange::gguf
