// Programs played for real, by stages that are no language model.
#include "weft/pipe/runner.h"

#include <gtest/gtest.h>

#include <mutex>

#include "tests/support/refused.h"
#include "weft/backend/open.h"
#include "weft/comm/threads.h"
#include "weft/ops/elementwise.h"
#include "weft/pipe/choose.h"
#include "weft/tensor/host.h"

using namespace weft;
using namespace weft::pipe;

namespace {

constexpr std::int64_t width = 3;

/// y = x + 1 with a debt a microbatch; the first stage begins with the batch's mask, the last one's y is the
/// loss, whose gradient is the factor.
class Step final : public Layer {
 public:
  Step(bool first, bool last, std::vector<int>& paid) : first_(first), last_(last), paid_(paid) {}
  Flow forward(Pass& pass, const Flow& x) override {
    const Tensor y = empty_like(pass.batch().mask);
    ops::copy_into(y, first_ ? pass.batch().mask : x.hidden);
    const Tensor one = empty_like(y);
    ops::fill(one, 1);
    ops::add_into(y, y, one);
    pass.save(Saved{y});
    if (last_) pass.set_losses(y);
    return last_ ? Flow{} : Flow{y, {}};
  }
  Flow backward(Pass& pass, const Flow& dy) override {
    const Tensor y = pass.take<Saved>().y;
    Tensor dx = empty_like(y);
    if (last_)
      ops::fill(dx, pass.place().loss_factor);
    else
      ops::copy_into(dx, dy.hidden);
    pass.weight_grads().owe([this, dx] { paid_.push_back(int(to_host<float>(dx)[0])); });
    return {dx, {}};
  }
  void each_parameter(const VisitParameter&) override {}

 private:
  struct Saved {
    Tensor y;
  };
  bool first_, last_;
  std::vector<int>& paid_;
};

struct Seen {
  std::vector<float> losses;           // of every microbatch
  std::vector<std::vector<int>> paid;  // by stage: the factor that came back with each microbatch
  int most_going = 0;
};

Seen played(const Schedule& compute, bool training = true) {
  const Schedule schedule = posted_early(with_transfers(compute));
  Seen seen;
  seen.losses.resize(std::size_t(schedule.microbatches));
  seen.paid.resize(std::size_t(schedule.stages()));
  std::mutex mutex;
  run_as_threads(schedule.ranks, [&](Communicator& world) {
    const auto device = open_device("cpu", {.threads = 1});
    std::map<int, Stage> stages;
    for (int s = 0; s < schedule.stages(); ++s)
      if (schedule.home[std::size_t(s)] == world.rank())
        stages[s].layers.push_back(
            std::make_unique<Step>(s == 0, s + 1 == schedule.stages(), seen.paid[std::size_t(s)]));
    std::vector<Batch> batches(std::size_t(schedule.microbatches));
    std::vector<float> factors;
    for (int m = 0; m < schedule.microbatches; ++m) {
      batches[std::size_t(m)].mask =
          from_host(*device, {width, 1, 1}, std::vector<float>(width, float(100 * m)));
      factors.push_back(float(m));
    }
    Runner runner(schedule, stages, world, *device);
    for (int round = 0; round < 2; ++round)
      runner.run({.microbatches = batches,
                  .loss_factors = factors,
                  .place = {.training = training},
                  .parcel = {.hidden = {width, 1, 1}, .dtype = Dtype::f32}},
                 [&](int m, const Pass& pass) {
                   const std::lock_guard lock(mutex);
                   seen.losses[std::size_t(m)] = to_host<float>(pass.losses())[0];
                 });
    const std::lock_guard lock(mutex);
    seen.most_going = std::max(seen.most_going, runner.most_going());
  });
  return seen;
}

}  // namespace

TEST(Runner, plays_every_schedule_to_the_same_end) {
  constexpr int m = 6;
  for (const Schedule& s : {one_f_one_b(3, m), gpipe(3, m), interleaved(3, 2, m), zero_bubble_h1(3, m),
                            zero_bubble_v(3, m), forwards_then_backwards({0, 2, 1, 1, 0}, m)}) {
    const Seen seen = played(s);
    for (int i = 0; i < m; ++i) EXPECT_EQ(seen.losses[std::size_t(i)], float(100 * i + s.stages())) << s.name;
    for (const auto& paid : seen.paid)
      EXPECT_EQ(paid, (std::vector<int>{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5})) << s.name;
  }
}

TEST(Runner, only_goes_forward_where_nobody_trains) {
  const Seen seen = played(one_f_one_b(2, 3), false);
  EXPECT_EQ(seen.losses, (std::vector<float>{2, 102, 202}));
  EXPECT_TRUE(seen.paid[0].empty());
}

// A message that comes back says that what was sent before has been read.
TEST(Runner, holds_what_it_sent_no_longer_than_it_must) {
  EXPECT_LE(played(one_f_one_b(2, 40)).most_going, 3);
  EXPECT_LE(played(zero_bubble_v(2, 40)).most_going, 8);
  EXPECT_EQ(played(gpipe(2, 40)).most_going, 40);
}

TEST(Runner, says_which_pass_is_not_open) {
  Schedule s = one_f_one_b(1, 1);
  std::swap(s.program[0][0], s.program[0][1]);
  s.program[0][0].what = Do::backward_weight;
  EXPECT_EQ(refused([&] { (void)played(s); }), "runner: stage 0, microbatch 0 is not open");
}
