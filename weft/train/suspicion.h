// A result that was refused twice alike, as the checkpoint before it remembers it: whoever goes on from there
// on another machine computes it again, and then knows whether the first machine erred.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/train/step.h"

namespace weft {

struct Suspicion {
  std::int64_t step = 0;
  std::vector<double> numbers;        // losses and the gradient's norm, as they came out
  std::vector<std::string> machines;  // by rank
  int rank = -1;                      // whose numbers went wrong first; -1: not known
  std::string where;                  // and in what
  bool made_up = false;               // an injected fault, that is there again
  bool machine_erred = false;         // and which another machine does not have
};

std::vector<double> numbers_of(const StepReport& report);
/// Bit for bit; what is not a number, or too large, is alike whatever its bits.
bool alike(const std::vector<double>& one, const std::vector<double>& other);
/// Whether `rank`'s machine, or where that is not known any of them, is one of the suspicious ones.
bool same_machine(const Suspicion& suspicion, const std::vector<std::string>& machines);

/// One that was read, and whether we compute where it arose.
struct Suspected {
  Suspicion what;
  bool same_machine = false;
};

/// Beside a complete step, for the step that follows it.
void write_suspicion(const std::filesystem::path& step, const Suspicion& suspicion, const FileSystem& files);
/// None where nothing is suspected. Fails with Kind::data on what no run of weft wrote.
std::optional<Suspicion> read_suspicion(const std::filesystem::path& step);
/// It is known now what to think of it.
void drop_suspicion(const std::filesystem::path& step);

std::string to_json(const Suspicion& suspicion);
Suspicion suspicion_from_json(std::string_view json, const std::string& who);

/// A result that a run refuses, because a machine erred or, as another machine said too, the numbers are so:
/// exit code
/// 17. Or that is not known before another machine computed it: 16, and what is suspected is to be
/// remembered, if it is not yet.
class Refused : public Error {
 public:
  enum class Known : std::uint8_t { machine_erred, numbers_are_so, not_yet };
  Refused(Known known, const std::string& sentence, std::optional<Suspicion> to_remember = {})
      : Error(Kind::device, sentence, Place{}), known_(known), to_remember_(std::move(to_remember)) {}
  Known known() const { return known_; }
  const std::optional<Suspicion>& to_remember() const { return to_remember_; }

 private:
  Known known_;
  std::optional<Suspicion> to_remember_;
};

}  // namespace weft
