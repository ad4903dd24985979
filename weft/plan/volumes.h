// What a rank sends in a step, by the ranks that get it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/comm/counted.h"
#include "weft/mesh/mesh.h"
#include "weft/optim/weights.h"
#include "weft/plan/partners.h"

namespace weft {

struct Volumes {
  std::array<Sent, kinds_of_partners> to{};
  Sent& operator[](Partners p) { return to[std::size_t(p)]; }
  const Sent& operator[](Partners p) const { return to[std::size_t(p)]; }
  std::int64_t total() const;
  bool operator==(const Volumes&) const = default;
};

/// Every circle of a mesh that was made in `world`, and those that it will make, add to these.
void charge(CountedCommunicator& world, const ProcessMesh& mesh, Volumes& volumes);

/// Of steps of so many microbatches: each microbatch adds the same.
struct VolumesOf {
  int microbatches = 0;
  Volumes volumes;
};
/// Of a step of `microbatches`, given those of two others.
Volumes extended(const VolumesOf& fewer, const VolumesOf& more, int microbatches);

/// A copy of a weight that several stages may hold: a rank that is alone cannot see who else does.
struct TiedCopy {
  std::string name;
  int use = 0;             // of the weight's uses, the one that it serves
  std::int64_t bytes = 0;  // of its gradient, as far as this rank updates it
  int holders = 1;         // as many as a rank that is alone takes them to be: not more than a guess
};
std::vector<TiedCopy> tied_copies(const Weights& weights);
/// By stage: adds the sums of gradients of copies in several of them (optim/tied.h).
void add_ties(std::span<Volumes> stages, std::span<const std::vector<TiedCopy>> copies);

/// The most of either, word by word.
Volumes most_of(const Volumes& a, const Volumes& b);

}  // namespace weft
