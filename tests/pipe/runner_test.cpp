// Programs played for real, by stages that are no language model.
#include "weft/pipe/runner.h"

#include <gtest/gtest.h>

#include <functional>
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
class PaidLayer final : public Layer {
 public:
  PaidLayer(bool first, bool last, std::vector<int>& paid) : first_(first), last_(last), paid_(paid) {}
  Flow forward(Pass& pass, const Flow& x) override {
    const Tensor y = empty_like(pass.batch().mask);
    ops::copy_into(y, first_ ? pass.batch().mask : x.hidden);
    const Tensor one = empty_like(y);
    ops::fill(one, 1);
    ops::add_into(y, y, one);
    pass.save(Saved{y});
    if (last_) pass.add_loss(0, y);
    return last_ ? Flow{} : Flow{y, {}};
  }
  Flow backward(Pass& pass, const Flow& dy) override {
    const Tensor y = pass.take<Saved>().y;
    Tensor dx = empty_like(y);
    if (last_)
      ops::fill(dx, pass.place().factors.token);
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

/// What an encoder's stages and a decoder's do with streams: the encoder adds one to hidden, its last stage
/// makes that the memory, and every stage of the decoder adds the memory to hidden.
class TwoStreams final : public Layer {
 public:
  enum class Role : std::uint8_t { encoder, border, decoder };
  TwoStreams(Role role, bool first, bool last, std::vector<int>& paid)
      : role_(role), first_(first), last_(last), paid_(paid) {}
  Flow forward(Pass& pass, const Flow& x) override {
    Flow y = x;
    if (first_) y.hidden = pass.batch().mask;
    if (role_ == Role::decoder)
      y.hidden = sum(x.hidden ? x.hidden : zeros(x.memory), x.memory);
    else
      y.hidden = sum(y.hidden, ones(y.hidden));
    if (role_ == Role::border) y = {.hidden = {}, .memory = y.hidden};
    if (last_) pass.add_loss(0, y.hidden);
    return last_ ? Flow{} : y;
  }
  Flow backward(Pass& pass, const Flow& dy) override {
    Flow d = dy;
    if (last_) {
      d.hidden = empty_like(pass.batch().mask);
      ops::fill(d.hidden, pass.place().factors.token);
    }
    if (role_ == Role::decoder) d.memory = d.memory ? sum(d.memory, d.hidden) : d.hidden;
    if (role_ == Role::border) d = {.hidden = d.memory, .memory = {}};
    pass.weight_grads().owe([this, seen = role_ == Role::encoder ? d.hidden : d.memory] {
      paid_.push_back(seen ? int(to_host<float>(seen)[0]) : -1);
    });
    return d;
  }
  void each_parameter(const VisitParameter&) override {}

 private:
  static Tensor filled(const Tensor& like, double value) {
    Tensor y = empty_like(like);
    ops::fill(y, value);
    return y;
  }
  static Tensor ones(const Tensor& like) { return filled(like, 1); }
  static Tensor zeros(const Tensor& like) { return filled(like, 0); }
  static Tensor sum(const Tensor& a, const Tensor& b) {
    Tensor y = empty_like(a);
    ops::add_into(y, a, b);
    return y;
  }
  Role role_;
  bool first_, last_;
  std::vector<int>& paid_;
};

struct Played {
  std::vector<float> losses;           // of every microbatch
  std::vector<std::vector<int>> paid;  // by stage: the factor that came back with each microbatch
  int most_going = 0;
};

using MakeLayer = std::function<std::unique_ptr<Layer>(int stage, std::vector<int>& paid)>;

Played played(const Schedule& compute, const MakeLayer& layer, std::span<const Parcel> parcels,
              bool training) {
  const Schedule schedule = beside_each_other(posted_early(with_transfers(compute)));
  Played seen;
  seen.losses.resize(std::size_t(schedule.microbatches));
  seen.paid.resize(std::size_t(schedule.stages()));
  std::mutex mutex;
  run_as_threads(schedule.ranks, [&](Communicator& world) {
    const auto device = open_device("cpu", {.threads = 1});
    std::map<int, Stage> stages;
    for (int s = 0; s < schedule.stages(); ++s)
      if (schedule.home[std::size_t(s)] == world.rank())
        stages[s].layers.push_back(layer(s, seen.paid[std::size_t(s)]));
    std::vector<Batch> batches(std::size_t(schedule.microbatches));
    std::vector<LossFactors> factors;
    for (int m = 0; m < schedule.microbatches; ++m) {
      batches[std::size_t(m)].mask =
          from_host(*device, {width, 1, 1}, std::vector<float>(width, float(100 * m)));
      factors.push_back({.token = float(m)});
    }
    Runner runner(schedule, stages, world, *device);
    for (int round = 0; round < 2; ++round)
      runner.run({.microbatches = batches,
                  .loss_factors = factors,
                  .place = {.training = training},
                  .parcels = parcels},
                 [&](int m, const Pass& pass) {
                   const std::lock_guard lock(mutex);
                   seen.losses[std::size_t(m)] = to_host<float>(pass.losses()[0].terms)[0];
                 });
    const std::lock_guard lock(mutex);
    seen.most_going = std::max(seen.most_going, runner.most_going());
  });
  return seen;
}

Played played(const Schedule& compute, bool training = true) {
  const Parcel parcel{.hidden = {width, 1, 1}, .memory = {}, .dtype = Dtype::f32};
  const auto layer = [last = compute.stages() - 1](int stage, std::vector<int>& paid) {
    return std::make_unique<PaidLayer>(stage == 0, stage == last, paid);
  };
  return played(compute, layer, {&parcel, 1}, training);
}

/// The first stages are an encoder's, the others a decoder's, which begin with nothing but the memory.
Played played_with_memory(const Schedule& compute, int encoder) {
  using Role = TwoStreams::Role;
  const Shape all{width, 1, 1};
  std::vector<Parcel> parcels;
  for (int stage = 0; stage < compute.stages(); ++stage)
    parcels.push_back(
        {.hidden = stage == encoder ? Shape() : all, .memory = stage < encoder ? Shape() : all});
  const auto layer = [encoder, last = compute.stages() - 1](int stage, std::vector<int>& paid) {
    const Role role = stage >= encoder ? Role::decoder : stage + 1 == encoder ? Role::border : Role::encoder;
    return std::make_unique<TwoStreams>(role, stage == 0, stage == last, paid);
  };
  return played(compute, layer, parcels, true);
}

}  // namespace

TEST(Runner, plays_every_schedule_to_the_same_end) {
  constexpr int m = 6;
  for (const Schedule& s :
       {one_f_one_b(3, m), gpipe(3, m), interleaved(3, 2, m), zero_bubble_h1(3, m), zero_bubble_v(3, m),
        forwards_then_backwards({0, 2, 1, 1, 0}, m), one_f_one_b(1, m, 1), interleaved(3, 2, m, 0, 1)}) {
    const Played seen = played(s);
    for (int i = 0; i < m; ++i) EXPECT_EQ(seen.losses[std::size_t(i)], float(100 * i + s.stages())) << s.name;
    for (const auto& paid : seen.paid)
      EXPECT_EQ(paid, (std::vector<int>{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5})) << s.name;
  }
}

// The loss is (mask + encoder) * decoder; what comes back to the encoder is every decoder stage's factor.
TEST(Runner, carries_an_encoders_output_to_every_stage_of_a_decoder) {
  constexpr int m = 4;
  for (const Schedule& s : {one_f_one_b(4, m), gpipe(4, m), interleaved(2, 2, m), zero_bubble_h1(4, m),
                            zero_bubble_v(2, m), forwards_then_backwards({0, 1, 1, 0}, m)})
    for (const int encoder : {1, 2, 3}) {
      const Played seen = played_with_memory(s, encoder);
      const int decoder = s.stages() - encoder;
      for (int i = 0; i < m; ++i)
        EXPECT_EQ(seen.losses[std::size_t(i)], float((100 * i + encoder) * decoder)) << s.name;
      for (int stage = 0; stage + 1 < encoder; ++stage)
        for (int i = 0; i < 2 * m; ++i)
          EXPECT_EQ(seen.paid[std::size_t(stage)][std::size_t(i)], i % m * decoder) << s.name;
    }
}

TEST(Runner, only_goes_forward_where_nobody_trains) {
  const Played seen = played(one_f_one_b(2, 3), false);
  EXPECT_EQ(seen.losses, (std::vector<float>{2, 102, 202}));
  EXPECT_TRUE(seen.paid[0].empty());
}

// A message that comes back says that what was sent before has been read.
TEST(Runner, holds_what_it_sent_no_longer_than_it_must) {
  EXPECT_LE(played(one_f_one_b(2, 40)).most_going, 3);
  EXPECT_LE(played(zero_bubble_v(2, 40)).most_going, 8);
  EXPECT_EQ(played(gpipe(2, 40)).most_going, 40);
}

// A group goes through all stages before the next one does: two of them lie in a stage's way at most.
TEST(Runner, holds_no_more_of_an_evaluation_than_a_group_a_stage) {
  for (const int microbatches : {12, 41, 200}) {
    EXPECT_EQ(played(forwards_only({0, 1}, microbatches), false).most_going, 2);
    EXPECT_EQ(played(forwards_only({0, 1, 2}, microbatches), false).most_going, 3);
    EXPECT_EQ(played(forwards_only({0, 1, 0, 1}, microbatches), false).most_going, 4);
    EXPECT_LE(played(forwards_only({0, 1, 2, 2, 1, 0}, microbatches), false).most_going, 6);
  }
}

TEST(Runner, evaluates_every_microbatch_wherever_stages_live) {
  for (const std::vector<int>& home : {std::vector{0, 1, 2}, {0, 1, 0, 1}, {0, 2, 1, 1, 0}}) {
    const Played seen = played(forwards_only(home, 11), false);
    for (int i = 0; i < 11; ++i) EXPECT_EQ(seen.losses[std::size_t(i)], float(100 * i + std::ssize(home)));
  }
}

TEST(Runner, says_which_pass_is_not_open) {
  Schedule s = one_f_one_b(1, 1);
  std::swap(s.program[0][0], s.program[0][1]);
  s.program[0][0].what = Do::backward_weight;
  EXPECT_EQ(refused([&] { (void)played(s); }), "runner: stage 0, microbatch 0 is not open");
}
