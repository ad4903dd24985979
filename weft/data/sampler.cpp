#include "weft/data/sampler.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/data/numpy_random.h"

namespace weft::data {
namespace {

class Sequential : public Sampler {
 public:
  explicit Sequential(std::int64_t total) : total_(total) {}
  void list(std::int64_t consumed, const SampleTurn& turn, std::vector<std::int64_t>& into) const override {
    check(turn);
    if (consumed < 0 || consumed > total_ - turn.global_batch) {
      fail(Kind::usage, "data: a step from sample ", consumed, " on takes ", turn.global_batch,
           " samples, there are ", total_, "; build for more samples or use {data.order=cyclic}");
    }
    each_place(turn,
               [&](std::int64_t, std::int64_t, std::int64_t place) { into.push_back(consumed + place); });
  }

 private:
  std::int64_t total_;
};

class Cyclic : public Sampler {
 public:
  Cyclic(std::int64_t total, Sharding sharding) : total_(total), sharding_(sharding) {}

  void list(std::int64_t consumed, const SampleTurn& turn, std::vector<std::int64_t>& into) const override {
    check(turn);
    return turn.owners == Owners::contiguous ? contiguous(consumed, turn, into)
                                             : as_megatron(consumed, turn, into);
  }

 private:
  void as_megatron(std::int64_t consumed, const SampleTurn& turn, std::vector<std::int64_t>& into) const {
    const std::int64_t group = std::int64_t{turn.micro_batch} * turn.ranks;
    const std::int64_t active = checked_active(group);
    if (consumed % active % group != 0) {
      fail(Kind::usage, "cyclic order: ", consumed, " samples consumed, expected whole groups of ", group,
           " (micro batch times data-parallel ranks) within an epoch of ", active);
    }
    const std::int64_t bucket = total_ / group * turn.micro_batch;
    const std::int64_t full = total_ / turn.micro_batch * turn.micro_batch;
    each_place(turn, [&](std::int64_t micro, std::int64_t k, std::int64_t) {
      const std::int64_t here = consumed + micro * group;
      const std::int64_t epoch = here / active, within = here % active;
      const std::int64_t sample = sharding_ == Sharding::on
                                      ? turn.rank * bucket + order(epoch, bucket, within / turn.ranks + k)
                                      : order(epoch, full, within + turn.rank + k * turn.ranks);
      into.push_back(sample);
    });
  }

  // The same order for every layout: one permutation of all samples, cut at whole global batches.
  void contiguous(std::int64_t consumed, const SampleTurn& turn, std::vector<std::int64_t>& into) const {
    if (sharding_ == Sharding::on) {
      fail(Kind::usage,
           "cyclic order: sharded by rank, which no other layout repeats; give {data.sharded_cycles=false}");
    }
    const std::int64_t active = checked_active(turn.global_batch);
    each_place(turn, [&](std::int64_t, std::int64_t, std::int64_t place) {
      into.push_back(order(consumed / active, total_, consumed % active + place));
    });
  }

  std::int64_t checked_active(std::int64_t group) const {
    const std::int64_t active = total_ - total_ % group;
    if (active > 0) return active;
    fail(Kind::usage, "cyclic order: ", total_, " samples are less than one batch of ", group);
  }

  std::int64_t order(std::int64_t epoch, std::int64_t size, std::int64_t place) const {
    if (epoch != epoch_ || size != static_cast<std::int64_t>(permutation_.size())) {
      permutation_.resize(static_cast<std::size_t>(size));
      torch_randperm(static_cast<std::uint32_t>(epoch), permutation_);
      epoch_ = epoch;
    }
    return permutation_[static_cast<std::size_t>(place)];
  }

  std::int64_t total_;
  Sharding sharding_;
  mutable std::int64_t epoch_ = -1;
  mutable std::vector<std::int64_t> permutation_;
};

}  // namespace

void check(const SampleTurn& turn) {
  if (turn.micro_batch < 1 || turn.ranks < 1 || turn.rank < 0 || turn.rank >= turn.ranks) {
    fail(Kind::internal, "sampler: micro batch ", turn.micro_batch, ", rank ", turn.rank, " of ", turn.ranks);
  }
  if (turn.global_batch < 1 || turn.global_batch % (turn.micro_batch * turn.ranks) != 0) {
    fail(Kind::usage, "global batch ", turn.global_batch, " is not a multiple of micro batch ",
         turn.micro_batch, " times ", turn.ranks, " data-parallel ranks");
  }
}

std::unique_ptr<Sampler> sequential_sampler(std::int64_t total) {
  return std::make_unique<Sequential>(total);
}

std::unique_ptr<Sampler> cyclic_sampler(std::int64_t total, Sharding sharding) {
  return std::make_unique<Cyclic>(total, sharding);
}

}  // namespace weft::data
