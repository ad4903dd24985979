// Tensors with numbers that say where they are, and random ways of cutting them over ranks.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/plain_device.h"
#include "weft/checkpoint/named.h"
#include "weft/tensor/host.h"

namespace weft::checkpoint::testing {

struct Global {
  std::string name;
  Shape shape;
  Dtype dtype = Dtype::f32;
};

/// A rank's memory and what it stands for; the device must outlive the tensors.
struct Holding {
  weft::testing::PlainDevice device;
  std::vector<Named> named;
};

/// The bytes of element i of the named tensor: no two neighbours are equal.
inline std::byte byte_of(const Global& global, std::int64_t element, std::int64_t byte) {
  const auto seed = std::uint64_t(element * 8 + byte) * 0x9E3779B97F4A7C15U + global.name.size() * 131U +
                    std::uint64_t(global.name.back());
  return std::byte(seed >> 53 & 0xffU);
}

/// Calls visit(element of the global tensor, element of the local memory) for all of a piece.
template <class Visit>
void each_element(const Piece& piece, const Visit& visit) {
  const Strides steps = contiguous_strides(piece.where.global);
  const Shape& local = piece.where.local;
  for (std::int64_t n = 0; n < local.elements(); ++n) {
    std::int64_t at = 0;
    std::int64_t left = n;
    for (int i = local.rank() - 1; i >= 0; --i) {
      at += (piece.where.offset[i] + left % local[i]) * steps[i];
      left /= local[i];
    }
    visit(at, piece.at + n);
  }
}

inline void fill(const Global& global, const Named& named) {
  const std::int64_t width = size_of(global.dtype);
  auto* memory = static_cast<std::byte*>(named.tensor.address());
  std::memset(memory, 0xEE, std::size_t(named.tensor.bytes()));
  for (const Piece& piece : named.pieces)
    each_element(piece, [&](std::int64_t at, std::int64_t here) {
      for (std::int64_t b = 0; b < width; ++b) memory[here * width + b] = byte_of(global, at, b);
    });
}

/// Elements of the pieces that are not the global tensor's.
inline std::int64_t wrong(const Global& global, const Named& named) {
  const std::int64_t width = size_of(global.dtype);
  const auto* memory = static_cast<const std::byte*>(named.tensor.address());
  std::int64_t out = 0;
  for (const Piece& piece : named.pieces)
    each_element(piece, [&](std::int64_t at, std::int64_t here) {
      for (std::int64_t b = 0; b < width; ++b)
        if (memory[here * width + b] != byte_of(global, at, b)) return void(++out);
    });
  return out;
}

/// Halves the box along random dimensions until there are about `parts` boxes.
inline std::vector<Box> cut_in_boxes(const Shape& shape, int parts, std::mt19937& random) {
  Dims zero;
  for (int i = 0; i < shape.rank(); ++i) zero.push_back(0);
  std::vector<Box> boxes{{Shape(zero), shape}};
  for (int tries = 0; tries < 8 * parts && int(boxes.size()) < parts && shape.rank() > 0; ++tries) {
    const std::size_t which = random() % boxes.size();
    const int dim = int(random() % unsigned(shape.rank()));
    const Box whole = boxes[which];
    if (whole.shape[dim] < 2) continue;
    const std::int64_t first = 1 + std::int64_t(random() % std::uint64_t(whole.shape[dim] - 1));
    Box rest = whole;
    boxes[which].shape[dim] = first;
    rest.offset[dim] += first;
    rest.shape[dim] -= first;
    boxes.push_back(rest);
  }
  std::shuffle(boxes.begin(), boxes.end(), random);
  return boxes;
}

/// Which tensors a rank holds, and their pieces.
using Share = std::vector<std::pair<std::size_t, std::vector<Piece>>>;

/// What each rank holds when the tensors are cut at random: some ranks several boxes in one memory, with
/// padding between, some none; now and then a second copy as replica 1.
inline std::vector<Share> cut_over_ranks(const std::vector<Global>& globals, int ranks, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Share> out;
  out.resize(std::size_t(ranks));
  for (std::size_t g = 0; g < globals.size(); ++g) {
    std::map<std::size_t, std::vector<Piece>> held;
    std::map<std::size_t, std::int64_t> used;
    const auto give = [&](std::size_t rank, const Box& box, int replica) {
      held[rank].push_back({{globals[g].shape, box.offset, box.shape, replica}, used[rank]});
      used[rank] += box.shape.elements() + std::int64_t(random() % 3);
    };
    for (const Box& box : cut_in_boxes(globals[g].shape, 1 + int(random() % 6), random)) {
      const std::size_t rank = random() % std::size_t(ranks);
      give(rank, box, 0);
      if (random() % 4 == 0) give((rank + 1) % std::size_t(ranks), box, 1);
    }
    for (auto& [rank, pieces] : held) out[rank].emplace_back(g, std::move(pieces));
  }
  return out;
}

/// Memory for one rank's share.
inline void hold(Holding& holding, const std::vector<Global>& globals, const Share& share) {
  for (const auto& [g, pieces] : share) {
    std::int64_t elements = 0;
    for (const Piece& piece : pieces) elements = std::max(elements, piece.at + piece.where.local.elements());
    holding.named.push_back(
        {globals[g].name, empty(holding.device, {elements + 2}, globals[g].dtype), pieces});
    std::memset(holding.named.back().tensor.address(), 0x55,
                std::size_t(holding.named.back().tensor.bytes()));
  }
}

inline const Global& global_of(const std::vector<Global>& globals, const std::string& name) {
  return *std::find_if(globals.begin(), globals.end(), [&](const Global& g) { return g.name == name; });
}

}  // namespace weft::checkpoint::testing
