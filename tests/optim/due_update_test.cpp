// An update that waits for layers gives the bits of one that does not, and each layer reads what is new.
#include "weft/optim/due_update.h"

#include <gtest/gtest.h>

#include "tests/support/failing_disk.h"
#include "tests/support/numbers.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/backend/open.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/rules.h"
#include "weft/optim/shelf.h"
#include "weft/tensor/host.h"

using namespace weft;
using support::FailingDisk;
using support::TemporaryDirectory;

namespace {

class Reader final : public Layer {
 public:
  Reader(Parameter own, Parameter* other) : own_(std::move(own)), other_(other) {}
  Flow forward(Pass&, const Flow& x) override { return x; }
  Flow backward(Pass&, const Flow& dy) override { return dy; }
  void each_parameter(const VisitParameter& visit) override { visit(own_); }
  void each_read(const VisitParameter& visit) override {
    visit(own_);
    if (other_ != nullptr) visit(*other_);
  }
  Parameter& own() { return own_; }

 private:
  Parameter own_;
  Parameter* other_;
};

constexpr int layers = 6;

/// Six layers of a vector each, of which the last reads the first's too; windows are smaller than a vector.
struct Model {
  Model(const Offload* offload, Dtype compute, const OptimizerConfig& config) {
    Stage& stage = stages[0];
    for (int i = 0; i < layers; ++i) {
      Parameter p = whole_parameter("p" + std::to_string(i), {96}, Init{.spread = 0.1F});
      p.layer = i;
      p.decays = i % 2 == 0;
      Parameter* const first = i + 1 == layers ? &own(0) : nullptr;
      stage.layers.push_back(std::make_unique<Reader>(std::move(p), first));
    }
    weights =
        std::make_unique<Weights>([&](const VisitParameter& visit) { stage.each_parameter(visit); }, *device,
                                  compute, Weights::For::training, DataParallel{.offload = offload});
    weights->initialize(7);
    rule = make_optimizer(*weights, config);
  }
  void let_wait() {
    due = std::make_unique<DueUpdate>(*weights, stages);
    weights->let_wait(due.get());
    lender = std::make_unique<DueLender>(*due, 0, nullptr);
  }
  Parameter& own(int layer) { return static_cast<Reader&>(*stages[0].layers[std::size_t(layer)]).own(); }
  void update(int step) {
    for (int i = 0; i < layers; ++i) ops::fill(own(i).grad.sum(), 0.1 * step + i);
    rule->update({.rate = 0.01, .ends_rate = 0.01, .decay = 0.1, .grad_scale = 0.5});
  }
  std::map<std::string, std::vector<double>> all() {
    if (due) due->finish();
    std::map<std::string, std::vector<double>> out;
    const auto take = [&](const Held& held) { out[held.name] = numbers(held.memory); };
    weights->each_master(take);
    rule->each_state(take);
    for (int i = 0; i < layers; ++i) out[own(i).name + " as layers read it"] = numbers(own(i).value);
    return out;
  }
  std::unique_ptr<Device> device = open_device("cpu", {.threads = 1});
  std::map<int, Stage> stages;
  std::unique_ptr<Weights> weights;
  std::unique_ptr<DueUpdate> due;
  std::unique_ptr<DueLender> lender;
  std::unique_ptr<Optimizer> rule;
};

Offload small_windows(const TemporaryDirectory& folder, int here = 3, const FileSystem& files = disk()) {
  return {.place = {.directory = folder.path(), .name = "a", .files = &files},
          .window = 32,
          .windows_here = here};
}

}  // namespace

TEST(DueUpdate, gives_the_bits_of_an_update_that_does_not_wait) {
  const TemporaryDirectory folder;
  for (const Dtype compute : {Dtype::f32, Dtype::bf16})
    for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lion})
      for (const int here : {1, 3, 100}) {
        const OptimizerConfig config{.kind = kind};
        const Offload offload = small_windows(folder, here);
        Model memory(nullptr, compute, config), waits(&offload, compute, config);
        waits.let_wait();
        for (int step = 1; step <= 4; ++step) {
          memory.update(step);
          waits.update(step);
          for (int i = 0; i < layers; ++i) {
            waits.lender->lend(i, Way::forward);
            EXPECT_EQ(numbers(waits.own(i).value), numbers(memory.own(i).value)) << step << " " << i;
          }
          waits.lender->lend(layers - 1, Way::backward);
          EXPECT_FALSE(waits.due->going());
          if (step % 2 == 0) {
            EXPECT_EQ(waits.all(), memory.all()) << step;  // and goes on behind a copy
          }
        }
      }
}

// With room for one window no more than a layer needs, and one window, is visited when it is lent.
TEST(DueUpdate, makes_a_layer_wait_for_its_own_windows_only) {
  const TemporaryDirectory folder;
  const Offload offload = small_windows(folder, 1);
  Model model(&offload, Dtype::f32, {});
  model.let_wait();
  const auto before = numbers(model.own(layers - 1).value);
  model.update(1);
  EXPECT_TRUE(model.due->going());
  model.lender->lend(0, Way::forward);
  EXPECT_TRUE(model.due->going());
  EXPECT_EQ(numbers(model.own(layers - 1).value), before);
  EXPECT_EQ(numbers(model.own(0).grad.sum()), std::vector<double>(96, 0));
  EXPECT_NE(numbers(model.own(layers - 1).grad.sum()), std::vector<double>(96, 0));
  model.lender->lend(layers - 1, Way::forward);
  EXPECT_FALSE(model.due->going());
  EXPECT_NE(numbers(model.own(layers - 1).value), before);
}

// Gradients of a step that begins while an update goes on are not added to old ones.
TEST(DueUpdate, leaves_gradients_that_are_zero) {
  const TemporaryDirectory folder;
  const Offload offload = small_windows(folder);
  Model model(&offload, Dtype::f32, {});
  model.let_wait();
  model.update(1);
  model.due->zero_grads();
  EXPECT_EQ(numbers(model.own(layers - 1).grad.sum()).front(), double(0.1F + layers - 1));
  model.due->finish();
  for (int i = 0; i < layers; ++i)
    EXPECT_EQ(numbers(model.own(i).grad.sum()), std::vector<double>(96, 0)) << i;
  ops::fill(model.own(0).grad.sum(), 1);
  model.due->zero_grads();
  EXPECT_EQ(numbers(model.own(0).grad.sum()), std::vector<double>(96, 0));
}

TEST(DueUpdate, that_fails_tells_everybody_who_comes) {
  const TemporaryDirectory folder;
  const FailingDisk torn;
  const Offload offload = small_windows(folder, 3, torn);
  Model model(&offload, Dtype::f32, {});
  model.let_wait();
  torn.reads_left = 7;
  model.update(1);
  const auto says = [&](const std::function<void()>& asks) {
    return refused(asks).find("Input/output error") != std::string::npos;
  };
  EXPECT_TRUE(says([&] {
    for (int i = 0; i < layers; ++i) model.lender->lend(i, Way::forward);
  }));
  EXPECT_TRUE(says([&] { model.lender->lend(0, Way::forward); }));
  EXPECT_TRUE(says([&] { model.due->finish(); }));
  EXPECT_TRUE(says([&] { model.due->zero_grads(); }));
  EXPECT_TRUE(says([&] { model.update(2); }));
}

// An update that begins before the last one ended would mix their gradients.
TEST(DueUpdate, is_one_at_a_time) {
  const TemporaryDirectory folder;
  const Offload offload = small_windows(folder);
  Model model(&offload, Dtype::f32, {});
  model.let_wait();
  model.update(1);
  EXPECT_NE(
      refused([&] { model.update(2); }).find("an update begins, and 0 windows of the last one are made"),
      std::string::npos);
}
