// A failure travels as its kind and its sentence.
#include "weft/checkpoint/agree.h"

#include <exception>
#include <new>

#include "weft/base/error.h"

namespace weft::checkpoint {
namespace {

struct Outcome {
  Kind kind = Kind::internal;
  std::string said;  // a value, or the failure's sentence
  bool failed = false;
};

std::string packed(const Outcome& outcome) {
  std::string out(1, outcome.failed ? static_cast<char>('0' + static_cast<int>(outcome.kind)) : '=');
  return out + outcome.said;
}

Outcome outcome_of(const std::function<std::string()>& work) {
  try {
    return {.said = work()};
  } catch (const Error& error) {
    return {error.kind(), error.what(), true};
  } catch (const std::bad_alloc&) {
    return {Kind::device, "checkpoint: the host's memory is exhausted", true};
  } catch (const std::exception& error) {
    return {Kind::device, error.what(), true};
  }
}

}  // namespace

std::vector<std::string> agree(Communicator& world, const std::function<std::string()>& work) {
  std::vector<std::string> said = world.tell_all(packed(outcome_of(work)));
  for (std::size_t r = 0; r < said.size(); ++r) {
    if (said[r].front() == '=') continue;
    const auto kind = static_cast<Kind>(said[r].front() - '0');
    if (said.size() == 1) fail(kind, said[r].substr(1));
    fail(kind, "rank ", r, ": ", said[r].substr(1));
  }
  for (std::string& one : said) one.erase(0, 1);
  return said;
}

}  // namespace weft::checkpoint
