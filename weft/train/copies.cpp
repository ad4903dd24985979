// A hash of every weight, and whether its greatest and its least over a circle are one.
#include "weft/train/copies.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/optim/weights.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

struct Hashed {
  const Parameter* parameter;
  std::int32_t hash;
};

std::int32_t hash_of(const Tensor& x) {
  std::vector<std::byte> bytes(std::size_t(x.elements() * size_of(x.dtype())));
  x.device().copy_to_host(bytes.data(), *x.storage(), x.offset() * size_of(x.dtype()),
                          std::int64_t(bytes.size()));
  return std::int32_t(std::uint32_t(hash(std::span<const std::byte>(bytes)).low));
}

std::vector<Hashed> hashes(const Replica& replica) {
  std::vector<Hashed> out;
  replica.each_value([&](const Parameter& p) { out.push_back({&p, hash_of(p.value)}); });
  return out;
}

// The greatest of the complements is the complement of the least.
std::string first_that_differs(const std::vector<Hashed>& hashed, Communicator& circle, Device& device) {
  if (circle.size() == 1 || hashed.empty()) return "";
  std::vector<std::int32_t> both;
  for (const Hashed& h : hashed) both.push_back(h.hash);
  for (const Hashed& h : hashed) both.push_back(~h.hash);
  const Tensor all = from_host(device, {std::int64_t(both.size())}, both);
  circle.all_reduce(all, Reduce::max).wait();
  const auto most = to_host<std::int32_t>(all);
  for (std::size_t i = 0; i < hashed.size(); ++i)
    if (most[i] != ~most[i + hashed.size()]) return hashed[i].parameter->name;
  return "";
}

}  // namespace

std::string copies_that_differ(const Replica& replica) {
  std::vector<Hashed> all = hashes(replica);
  Device& device = replica.device();
  const std::string data = first_that_differs(all, replica.mesh().along({Axis::dp, Axis::cp}), device);
  // By what is cut, not by what this rank happens to hold: of a small vocabulary the first may hold all.
  std::erase_if(all, [](const Hashed& h) { return h.parameter->spread.cut.holds(Axis::tp); });
  const std::string tensor = first_that_differs(all, replica.mesh().along(Axis::tp), device);
  if (!data.empty()) return text("data-parallel ranks hold different bits of ", data);
  return tensor.empty() ? "" : text("tensor-parallel ranks hold different bits of ", tensor);
}

}  // namespace weft
