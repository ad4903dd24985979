// Gradients kept in bf16, against a plain loop that rounds once a microbatch.
#include "weft/optim/narrow_sums.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weft/backend/open.h"
#include "weft/base/half.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/grad_reduction.h"
#include "weft/tensor/host.h"

using namespace weft;

namespace {

constexpr std::int64_t count = 40;

/// What use `use` of parameter `which` gives for a microbatch.
std::vector<float> term(int which, int microbatch, int use) {
  std::vector<float> out(count);
  for (std::int64_t i = 0; i < count; ++i)
    out[std::size_t(i)] = float((i * 37 + which * 11 + microbatch * 29 + use * 17) % 101 - 50) / 64.0F;
  return out;
}

/// Two weights of one bucket; each microbatch adds to the first once and to the second twice.
class TwoWeights {
 public:
  TwoWeights()
      : device_(open_device("cpu", {.threads = 1})),
        once_(whole_parameter("once", {count}, {})),
        twice_(whole_parameter("twice", {count}, {})) {
    twice_.uses = 2;
    weights_.emplace(
        [this](const VisitParameter& visit) {
          visit(once_);
          visit(twice_);
        },
        *device_, Dtype::bf16, Weights::For::training, DataParallel{.sums = Dtype::bf16});
    reduction_.emplace(*weights_, ReduceWhen::after_backward);
  }
  void begin(int microbatches) {
    weights_->zero_grads();
    reduction_->begin(microbatches);
  }
  void add(int which, int microbatch, int use = 0) {
    Parameter& p = which == 0 ? once_ : twice_;
    const Tensor sum = p.grad.sum();
    EXPECT_EQ(sum.dtype(), Dtype::f32);
    ops::add_into(sum, sum, from_host(*device_, {count}, term(which, microbatch, use)));
    p.grad.added();
  }
  bool room() const { return once_.grad.here(); }
  void finish() { reduction_->finish(); }
  std::vector<double> kept(int which) const {
    const WeightBlock& block = weights_->blocks().front();
    EXPECT_EQ(block.grads.dtype(), Dtype::bf16);
    return numbers(Weights::part(block.grads, block.slots[std::size_t(which)]));
  }
  GradReduction& reduction() { return *reduction_; }

 private:
  std::unique_ptr<Device> device_;
  Parameter once_, twice_;
  std::optional<Weights> weights_;
  std::optional<GradReduction> reduction_;
};

/// What is kept behind so many microbatches.
std::vector<double> rounded(int which, int microbatches) {
  std::vector<double> out(count, 0);
  for (int m = 0; m < microbatches; ++m) {
    std::vector<float> sum(out.begin(), out.end());
    for (int use = 0; use <= which; ++use)
      for (std::int64_t i = 0; i < count; ++i) sum[std::size_t(i)] += term(which, m, use)[std::size_t(i)];
    for (std::int64_t i = 0; i < count; ++i) out[std::size_t(i)] = float(bf16(sum[std::size_t(i)]));
  }
  return out;
}

}  // namespace

TEST(NarrowSums, are_rounded_once_a_microbatch_and_need_no_room_between) {
  TwoWeights two;
  for (int step = 0; step < 2; ++step) {
    two.begin(3);
    for (int m = 0; m < 3; ++m) {
      EXPECT_FALSE(two.room());
      two.add(1, m, 0);
      two.add(0, m);
      EXPECT_TRUE(two.room());
      two.add(1, m, 1);
    }
    EXPECT_FALSE(two.room());
    two.finish();
    EXPECT_EQ(two.kept(0), rounded(0, 3));
    EXPECT_EQ(two.kept(1), rounded(1, 3));
  }
}

// As a schedule does that pays the debts of matrices later than those of norms.
TEST(NarrowSums, do_not_show_which_weight_ran_ahead) {
  TwoWeights two;
  two.begin(3);
  two.add(0, 0);
  two.add(0, 1);
  two.add(1, 0, 0);
  two.add(0, 2);
  for (const auto& [m, use] : {std::pair{0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}}) two.add(1, m, use);
  two.finish();
  EXPECT_FALSE(two.room());
  EXPECT_EQ(two.kept(0), rounded(0, 3));
  EXPECT_EQ(two.kept(1), rounded(1, 3));
}

TEST(NarrowSums, lose_nothing_where_a_use_never_comes) {
  TwoWeights two;
  two.begin(1);
  two.add(0, 0);
  two.finish();
  EXPECT_FALSE(two.room());
  EXPECT_EQ(two.kept(0), rounded(0, 1));
  EXPECT_EQ(two.kept(1), std::vector<double>(count, 0));
}

TEST(NarrowSums, keep_nothing_of_what_was_added_while_no_step_went_on) {
  TwoWeights two;
  two.begin(1);
  two.finish();
  two.add(0, 0);
  EXPECT_TRUE(two.room());
  two.reduction().drop_rooms();
  EXPECT_FALSE(two.room());
  EXPECT_EQ(two.kept(0), std::vector<double>(count, 0));
}
