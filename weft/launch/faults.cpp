// Reads --inject, and writes what is left of it for one attempt.
#include "weft/launch/faults.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::launch {
namespace {

constexpr std::array<std::string_view, 4> kinds{"kill", "hang", "slow", "flip"};

std::int64_t number(std::string_view who, std::string_view word, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, wrong] = std::from_chars(word.data(), end, value);
  if (wrong != std::errc{} || stop != end || value < least || value > most)
    fail(Kind::usage, who, ": '", word, "' is not a whole number from ", least, " to ", most);
  return value;
}

void set(Fault& fault, std::string_view who, std::string_view pair) {
  const auto equals = pair.find('=');
  const std::string_view key = trim(pair.substr(0, equals));
  const std::string_view value = equals == std::string_view::npos ? "" : trim(pair.substr(equals + 1));
  const std::string where = text(who, ": ", key);
  if (key == "step")
    fault.step = number(where, value, 1, std::int64_t{1} << 40);
  else if (key == "rank")
    fault.rank = int(number(where, value, 0, 1 << 20));
  else if (key == "attempt")
    fault.attempt = int(number(where, value, 0, 1 << 20));
  else if (key == "signal" && fault.kind == FaultKind::kill)
    fault.signal = int(number(where, value, 1, 31));
  else if (key == "ms" && fault.kind == FaultKind::slow)
    fault.ms = int(number(where, value, 1, 3'600'000));
  else
    fail(Kind::usage, who, ": '", key, "' says nothing of ", kinds[std::size_t(fault.kind)],
         "; there are step, rank and attempt, signal of kill, ms of slow");
}

}  // namespace

std::vector<Fault> read_faults(std::string_view who, std::string_view words) {
  std::vector<Fault> out;
  for (const std::string_view one : split(words, ';')) {
    const auto at = one.find('@');
    const std::string_view kind = trim(one.substr(0, at));
    const auto* const found = std::find(kinds.begin(), kinds.end(), kind);
    if (found == kinds.end() || at == std::string_view::npos)
      fail(Kind::usage, who, ": '", one,
           "' is not kill@…, hang@…, slow@… or flip@…, as in kill@step=5,rank=2");
    Fault fault{.kind = static_cast<FaultKind>(found - kinds.begin())};
    for (const std::string_view pair : split(one.substr(at + 1), ',')) set(fault, who, pair);
    if (fault.kind == FaultKind::slow && fault.ms == 0)
      fail(Kind::usage, who, ": '", one, "' does not say by how much; add ms=20");
    out.push_back(fault);
  }
  return out;
}

std::string faults_of(const std::vector<Fault>& faults, int attempt) {
  std::string out;
  for (const Fault& f : faults) {
    if (f.attempt != attempt) continue;
    out += text(out.empty() ? "" : ";", kinds[std::size_t(f.kind)], "@step=", f.step, ",rank=", f.rank,
                ",attempt=", f.attempt);
    if (f.kind == FaultKind::kill) out += text(",signal=", f.signal);
    if (f.kind == FaultKind::slow) out += text(",ms=", f.ms);
  }
  return out;
}

}  // namespace weft::launch
