// Texts travel as u8 tensors of one length: that of the longest.
#include "weft/checkpoint/agree.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "weft/base/error.h"
#include "weft/checkpoint/host_memory.h"
#include "weft/tensor/host.h"

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

std::vector<std::string> tell_all(Communicator& world, const std::string& mine) {
  if (world.size() == 1) return {mine};
  // The run's own device would not do: in its steady state it may refuse fresh blocks.
  const auto memory = host_memory();
  const std::int64_t ranks = world.size();
  const Tensor lengths = empty(*memory, {ranks}, Dtype::i64, Use::communication);
  const auto length = static_cast<std::int64_t>(mine.size());
  world.all_gather(lengths, from_host<std::int64_t>(*memory, {1}, std::span(&length, 1), Use::communication))
      .wait();
  const auto sizes = lengths.as<std::int64_t>();
  const std::int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::string> out;
  if (longest == 0) return std::vector<std::string>(sizes.size());
  const Tensor all = empty(*memory, {ranks * longest}, Dtype::u8, Use::communication);
  const Tensor padded = empty(*memory, {longest}, Dtype::u8, Use::communication);
  std::memset(padded.address(), 0, std::size_t(longest));
  std::memcpy(padded.address(), mine.data(), mine.size());
  world.all_gather(all, padded).wait();
  const auto* bytes = static_cast<const char*>(all.address());
  for (std::int64_t r = 0; r < ranks; ++r)
    out.emplace_back(bytes + r * longest, std::size_t(sizes[std::size_t(r)]));
  return out;
}

std::vector<std::string> agree(Communicator& world, const std::function<std::string()>& work) {
  std::vector<std::string> said = tell_all(world, packed(outcome_of(work)));
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
