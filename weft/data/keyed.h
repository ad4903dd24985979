// An order that is computed, not stored: a keyed permutation of samples, so that any step is found at once in
// constant memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/data/dataset.h"
#include "weft/data/gpt_dataset.h"
#include "weft/data/index.h"
#include "weft/data/split.h"

namespace weft::data {

/// A bijection of [0, size), another one for every key. A Feistel network on a rectangle that is just large
/// enough, its round function Philox; what falls into the rectangle's rest walks on until it comes out. Runs
/// depend on its values: never change them.
class KeyedPermutation {
 public:
  struct Key {
    std::uint64_t seed = 0, stream = 0, epoch = 0;
  };
  KeyedPermutation(std::uint64_t size, const Key& key);
  std::uint64_t size() const { return size_; }
  std::uint64_t operator()(std::uint64_t i) const;

 private:
  std::uint64_t mixed(std::uint64_t place) const;

  std::uint64_t size_, width_, height_;
  Key key_;
};

/// Samples of `range` in keyed order, epoch after epoch without end; documents stand as in the file, and
/// every epoch cuts them at other places. Nothing is read but the lookups of the samples asked for.
std::unique_ptr<Composition> keyed_composition(std::shared_ptr<const Source> source, Range range,
                                               const Order& order);

/// Several data sets as one by weight, computed place by place: every 65,536 places hold each member by its
/// share, shuffled by key.
class KeyedBlend : public Dataset {
 public:
  KeyedBlend(std::vector<std::shared_ptr<const Dataset>> members, std::span<const double> weights,
             std::int64_t size, std::uint64_t seed);
  std::int64_t size() const override { return size_; }
  void fill(std::int64_t i, Sample& into) const override;
  std::vector<Origin> origins(std::int64_t i) const override;

  static constexpr std::int64_t block = 65536;
  /// How many of a block's places each member has; at least one.
  static std::vector<std::int64_t> places(std::span<const double> weights);
  /// How many samples a member needs for a blend of `size`.
  static std::int64_t needed(std::int64_t places_of_member, std::int64_t size);

 private:
  struct MemberSample {
    const Dataset& member;
    std::int64_t sample;
  };
  MemberSample at(std::int64_t i) const;

  std::vector<std::shared_ptr<const Dataset>> members_;
  std::vector<std::int64_t> ends_;  // of each member's places in a block before they are shuffled
  std::int64_t size_;
  std::uint64_t seed_;
};

}  // namespace weft::data
