// What hosts say, where a communicator has no better way: as tensors in the host's memory, texts in one
// length: that of the longest.
#include "weft/comm/communicator.h"

#include <algorithm>
#include <cstring>

#include "weft/tensor/host.h"
#include "weft/tensor/host_memory.h"

namespace weft {

std::vector<std::string> Communicator::tell_all(const std::string& mine) {
  if (size() == 1) return {mine};
  // For those who take the host's memory as they take any. The run's own device would not do: in its steady
  // state it may refuse fresh blocks.
  const auto memory = host_memory();
  const std::int64_t ranks = size();
  const Tensor lengths = empty(*memory, {ranks}, Dtype::i64, Use::communication);
  const auto length = static_cast<std::int64_t>(mine.size());
  all_gather(lengths, from_host<std::int64_t>(*memory, {1}, std::span(&length, 1), Use::communication))
      .wait();
  const auto sizes = lengths.as<std::int64_t>();
  const std::int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::string> out;
  if (longest == 0) return std::vector<std::string>(sizes.size());
  const Tensor all = empty(*memory, {ranks * longest}, Dtype::u8, Use::communication);
  const Tensor padded = empty(*memory, {longest}, Dtype::u8, Use::communication);
  std::memset(padded.address(), 0, std::size_t(longest));
  std::memcpy(padded.address(), mine.data(), mine.size());
  all_gather(all, padded).wait();
  const auto* bytes = static_cast<const char*>(all.address());
  for (std::int64_t r = 0; r < ranks; ++r)
    out.emplace_back(bytes + r * longest, std::size_t(sizes[std::size_t(r)]));
  return out;
}

void Communicator::agree(std::span<double> numbers, Reduce how) {
  if (size() == 1 || numbers.empty()) return;
  const auto memory = host_memory();
  const Tensor all = from_host<double>(*memory, {std::ssize(numbers)}, numbers, Use::communication);
  all_reduce(all, how).wait();
  std::ranges::copy(all.as<double>(), numbers.begin());
}

}  // namespace weft
