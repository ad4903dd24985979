// Looking for the first number that is not finite: forward with a watch, then the gradients one microbatch at
// a time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "weft/base/error.h"
#include "weft/data/excerpt.h"
#include "weft/ops/reduce.h"
#include "weft/optim/shelf.h"
#include "weft/tensor/host.h"
#include "weft/train/replica.h"

namespace weft {
namespace {

constexpr int nowhere = 1 << 30;
constexpr int at_the_end = nowhere - 2;  // what is not numbered and stands behind all layers
constexpr int in_gradients = nowhere - 1;

/// Remembers the first operation whose result holds a number that is not finite.
class FirstNotFinite final : public Watch {
 public:
  void see(const char* operation, int layer, const Tensor& x) override {
    if (found() || number(ops::find_nonfinite(x)) < 0) return;
    const bool first = layer < 0 && std::string_view(operation) == "embedding";
    depth_ = first ? -1 : layer < 0 ? at_the_end : layer;
    where_ = layer < 0 ? fmt::format("first seen after {}", operation)
                       : fmt::format("first seen after {} of layer {}", operation, layer);
  }
  bool found() const { return depth_ != nowhere; }
  int depth() const { return depth_; }
  const std::string& where() const { return where_; }

 private:
  int depth_ = nowhere;
  std::string where_;
};

/// What a rank has to say, and how early in the model it stands; the earliest of a circle is everybody's.
struct Finding {
  int depth = nowhere;
  std::string sentence;
  int rank = -1;  // who found it
  bool found() const { return depth != nowhere; }
};

/// The finding of least depth, of the first rank that has it.
Finding agree_on_earliest(Communicator& circle, const Finding& mine) {
  const auto said = circle.tell_all(fmt::format("{} {} {}", mine.depth, mine.rank, mine.sentence));
  Finding earliest;
  for (const std::string& one : said) {
    std::istringstream words(one);
    Finding theirs;
    words >> theirs.depth >> theirs.rank;
    std::getline(words.ignore(), theirs.sentence);
    if (theirs.depth < earliest.depth) earliest = std::move(theirs);
  }
  return earliest;
}

std::string samples_of(const Batch& batch) {
  std::vector<std::int64_t> numbers = batch.sample_numbers;
  for (std::int64_t& number : numbers) number = data::sample_of(number);
  return fmt::format("samples {}", fmt::join(numbers, ", "));
}

Finding bad_gradient(const Weights& weights) {
  for (const WeightBlock& block : weights.blocks())
    for (const WeightSlot& slot : block.slots)
      if (const GradSink& grad = slot.parameter->grad;
          grad.here() && number(ops::find_nonfinite(grad.sum())) >= 0)
        return {.depth = in_gradients, .sentence = "in the gradient of " + slot.parameter->name, .rank = -1};
  return {};
}

bool is_finite(const Held& held) {
  return std::ranges::all_of(held.pieces, [&](const Piece& piece) {
    return number(ops::find_nonfinite(held.memory.slice(0, piece.at, piece.where.local.elements()))) < 0;
  });
}

/// Whose number stands there in a block.
const std::string& name_at(const WeightBlock& block, std::int64_t place) {
  const auto behind = std::ranges::upper_bound(block.slots, place, {}, &WeightSlot::at);
  return std::prev(behind)->parameter->name;
}

}  // namespace

void Replica::do_again(const Batch& batch, const StepOrder& order, Watch& watch) {
  finish_update();
  const pipe::Schedule schedule = pipe::with_transfers(pipe::forwards_then_backwards(homes_, 1));
  pipe::Runner runner(schedule, stages_, pp(), device_);
  const double tokens = number(ops::sum(batch.mask));
  const float scale = scaler_ ? float(scaler_->scale()) : 1;
  LossFactors factor{.token = tokens > 0 ? scale / float(tokens) : 0,
                     .sample = scale / float(batch.samples.elements()),
                     .pass = scale,
                     .balance = scale};
  factor.ahead.fill(factor.token);
  weights_.zero_grads();
  reduction_.drop_rooms();
  pipe::Runner::Order work = work_on(
      {&batch, 1}, {&factor, 1}, {.seed = order.seed, .step = std::uint64_t(order.step), .training = true});
  work.watch = &watch;
  runner.run(work, [](int, const Pass&) {});
}

NotFiniteAt Replica::find_not_finite(std::span<const Batch> microbatches, const StepOrder& order) {
  Finding found;
  for (std::size_t i = 0; i < microbatches.size() && !found.found(); ++i) {
    FirstNotFinite watch;
    do_again(microbatches[i], order, watch);
    found = watch.found() ? Finding{watch.depth(), watch.where(), -1} : bad_gradient(weights_);
    found.sentence += ", " + samples_of(microbatches[i]);
    found.rank = mesh_.world().rank();
    found = agree_on_earliest(mesh_.along(model_axes(View::dense)), found);
    // All stop at one microbatch, because the next would need everybody: for attention along
    // cp, for weights that are cut, for experts' tokens.
    found = agree_on_earliest(mesh_.along(data_axes(View::dense)), found);
  }
  reduction_.drop_rooms();
  if (found.found()) return {found.sentence, found.rank};
  return {"only in the sum over microbatches: gradients are too large to be added"};
}

void Replica::must_have_finite_weights(std::int64_t step) const {
  finish_update();
  Finding found;
  weights_.each_master([&](const Held& held) {
    if (!found.found() && held.block.shelf == nullptr && !is_finite(held))
      found = {.depth = in_gradients, .sentence = held.name, .rank = -1};
  });
  if (Shelf* shelf = weights_.shelf()) {
    shelf->begin(Shelf::Walk::read_first);
    while (const Shelf::Window* window = shelf->next()) {
      const WeightBlock& block = weights_.blocks()[window->block];
      if (block.shelf == nullptr || found.found()) continue;
      const auto bad = std::int64_t(number(ops::find_nonfinite(block.master_of(window->part))));
      if (bad >= 0)
        found = {.depth = in_gradients, .sentence = name_at(block, window->part.at + bad), .rank = -1};
    }
  }
  found = agree_on_earliest(mesh_.along(model_axes(View::dense)), found);
  found = agree_on_earliest(mesh_.along(data_axes(View::dense)), found);
  if (!found.found()) return;
  fail(Kind::data, "step ", step, ": ", found.sentence,
       " was not finite when the step began, so neither it nor a later one can be applied; go on from a "
       "checkpoint, and look at {rate.peak}, {optimizer.epsilon}, {optimizer.clip} and {model.init.std}");
}

}  // namespace weft
