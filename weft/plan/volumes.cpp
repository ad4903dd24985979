// Circles know their bytes; the mesh knows whose they are.
#include "weft/plan/volumes.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft {
namespace {

/// each(result, a, b) for every word to every kind of partner.
template <class Each>
Volumes joined(const Volumes& a, const Volumes& b, const Each& each) {
  Volumes out;
  for (std::size_t p = 0; p < kinds_of_partners; ++p)
    for (std::size_t what = 0; what < kinds_of_traffic; ++what)
      out.to[p].bytes[what] = each(a.to[p].bytes[what], b.to[p].bytes[what]);
  return out;
}

}  // namespace

std::int64_t Volumes::total() const {
  std::int64_t all = 0;
  for (const Sent& sent : to) all += sent.total();
  return all;
}

void charge(CountedCommunicator& world, const ProcessMesh& mesh, Volumes& volumes) {
  charge(world, mesh, [&](Partners partners) -> Sent& { return volumes[partners]; });
}

Volumes extended(const VolumesOf& fewer, const VolumesOf& more, int microbatches) {
  const std::int64_t apart = more.microbatches - fewer.microbatches, left = microbatches - more.microbatches;
  return joined(fewer.volumes, more.volumes, [&](std::int64_t few, std::int64_t many) {
    return left == 0 ? many : many + (many - few) * left / apart;
  });
}

std::vector<TiedCopy> tied_copies(const Weights& weights) {
  std::vector<TiedCopy> out;
  for (const WeightBlock& block : weights.blocks())
    for (const WeightBucket& bucket : block.buckets)
      for (const WeightSlot& slot : block.slots_of(bucket)) {
        if (!slot.parameter->tied) continue;
        const std::int64_t elements = bucket.elements / (block.readers.cut() ? block.readers.ranks() : 1);
        const Communicator* holders = weights.ties().holders(slot.parameter->name);
        out.push_back({.name = slot.parameter->name,
                       .use = slot.parameter->use,
                       .bytes = elements * size_of(block.grads.dtype()),
                       .holders = holders ? holders->size() : 1});
      }
  return out;
}

namespace {

struct TiedWeight {
  std::set<std::size_t> holders;
  int uses = 0;
  std::int64_t bytes = 0;
  /// Of three uses the first two are added in one word, the third in another.
  std::int64_t sent(int of_uses, std::int64_t ranks) const {
    return std::max(of_uses - 1, 1) * (2 * bytes * (ranks - 1) / ranks);
  }
};

/// What a rank that was alone took its own copies' sums to be.
std::int64_t guessed(std::span<const TiedCopy> copies) {
  std::map<std::string, std::pair<TiedWeight, int>> by_name;
  for (const TiedCopy& copy : copies) {
    auto& [weight, ranks] = by_name[copy.name];
    weight.uses = std::max(weight.uses, copy.use + 1);
    weight.bytes = copy.bytes;
    ranks = copy.holders;
  }
  std::int64_t sum = 0;
  for (const auto& [name, known] : by_name) sum += known.first.sent(known.first.uses, known.second);
  return sum;
}

}  // namespace

void add_ties(std::span<Volumes> stages, std::span<const std::vector<TiedCopy>> copies) {
  std::map<std::string, TiedWeight> by_name;
  const auto sums = [&](std::size_t stage) -> std::int64_t& {
    return stages[stage][Partners::pipeline].bytes[std::size_t(Traffic::sums)];
  };
  for (std::size_t stage = 0; stage < copies.size(); ++stage) {
    sums(stage) -= guessed(copies[stage]);
    for (const TiedCopy& copy : copies[stage]) {
      TiedWeight& weight = by_name[copy.name];
      weight.holders.insert(stage);
      weight.uses = std::max(weight.uses, copy.use + 1);
      weight.bytes = copy.bytes;
    }
  }
  for (const auto& [name, weight] : by_name)
    for (const std::size_t stage : weight.holders)
      sums(stage) += weight.sent(weight.uses, std::ssize(weight.holders));
}

Volumes most_of(const Volumes& a, const Volumes& b) {
  return joined(a, b, [](std::int64_t x, std::int64_t y) { return std::max(x, y); });
}

}  // namespace weft
