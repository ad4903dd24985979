// Faults made on purpose, to see what a job does then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::launch {

/// kill: a signal to itself. hang: computes nothing and says nothing any more. slow: so much longer in every
/// step from then on. flip: one bit of a weight is another.
enum class FaultKind : std::uint8_t { kill, hang, slow, flip };

struct Fault {
  FaultKind kind = FaultKind::kill;
  std::int64_t step = 1;  // at whose beginning it happens
  int rank = 0;
  int attempt = 0;  // 0: the first start
  int signal = 9;   // of kill
  int ms = 0;       // of slow
  bool operator==(const Fault&) const = default;
};

/// "kill@step=5,rank=2;slow@step=3,rank=0,ms=20". Fails with what was found and what there is.
std::vector<Fault> read_faults(std::string_view who, std::string_view words);
/// Those of one attempt, to be read again.
std::string faults_of(const std::vector<Fault>& faults, int attempt);

}  // namespace weft::launch
