// A hash of every weight, and whether its greatest and its least over a circle are one.
#include "weft/train/copies.h"

#include <algorithm>
#include <array>
#include <vector>

#include "weft/base/hash.h"
#include "weft/optim/weights.h"

namespace weft {
namespace {

struct Hashed {
  const Parameter* parameter;
  std::int32_t hash;
};

/// Ranks that hold the same of what is not cut along these axes.
struct Alike {
  View view;
  Axes along;
  const char* ranks;
};
constexpr std::array<Alike, 4> alike{{{View::dense, data_axes(View::dense), "data-parallel"},
                                      {View::dense, Axis::tp, "tensor-parallel"},
                                      {View::experts, data_axes(View::experts), "expert-data-parallel"},
                                      {View::experts, Axis::etp, "expert-tensor-parallel"}}};

std::int32_t hash_of(const Tensor& x) {
  std::vector<std::byte> bytes(std::size_t(x.elements() * size_of(x.dtype())));
  x.device()
      .copy_to_host(bytes.data(), *x.storage(), x.offset() * size_of(x.dtype()), std::int64_t(bytes.size()))
      .wait();
  return std::int32_t(std::uint32_t(hash(std::span<const std::byte>(bytes)).low));
}

std::vector<Hashed> hashes(const Replica& replica) {
  std::vector<Hashed> out;
  replica.each_value([&](const Parameter& p) { out.push_back({&p, hash_of(p.value)}); });
  return out;
}

// By what is cut, not by what this rank happens to hold: of a small vocabulary the first may hold all.
std::vector<Hashed> held_by_all(const Alike& ranks, const std::vector<Hashed>& all) {
  std::vector<Hashed> out;
  for (const Hashed& h : all) {
    const Spread& spread = h.parameter->spread;
    if (view_of(spread, h.parameter->name) == ranks.view && (spread.cut & ranks.along).empty())
      out.push_back(h);
  }
  return out;
}

// The greatest of what is below zero is the least of what is above.
std::string first_that_differs(const std::vector<Hashed>& hashed, Communicator& circle) {
  std::vector<double> both;
  for (const Hashed& h : hashed) both.push_back(h.hash);
  for (const Hashed& h : hashed) both.push_back(-double(h.hash));
  circle.agree(both, Reduce::max);
  for (std::size_t i = 0; i < hashed.size(); ++i)
    if (both[i] != -both[i + hashed.size()]) return hashed[i].parameter->name;
  return "";
}

}  // namespace

std::string copies_that_differ(const Replica& replica) {
  const std::vector<Hashed> all = hashes(replica);
  std::string said;
  for (const Alike& ranks : alike) {
    const std::vector<Hashed> held = held_by_all(ranks, all);
    if (held.empty()) continue;  // on all ranks of this stage
    const std::string name = first_that_differs(held, replica.mesh().along(ranks.along));
    if (said.empty() && !name.empty()) said = text(ranks.ranks, " ranks hold different bits of ", name);
  }
  return said;
}

}  // namespace weft
