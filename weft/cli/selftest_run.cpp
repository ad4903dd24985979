// The small model, and its training on thread ranks.
#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>

#include "weft/base/number.h"
#include "weft/cli/rank_device.h"
#include "weft/cli/selftest.h"
#include "weft/comm/threads.h"
#include "weft/model/layer_parts.h"
#include "weft/tensor/host.h"
#include "weft/train/ranks.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"
#include "weft/train/trainer.h"
#include "weft/train/validate.h"

namespace weft::cli {
namespace {

constexpr int steps = 6;

/// Keeps every loss.
class Losses final : public report::Sink {
 public:
  explicit Losses(std::vector<double>& into) : into_(into) {}
  const char* name() const override { return "selftest"; }
  void write(const report::StepRecord& step) override { into_.push_back(step.losses.front().second); }
  void write(const report::Evaluation&) override {}

 private:
  std::vector<double>& into_;
};

/// Puts a box of a tensor where it belongs in the whole.
void place(std::vector<float>& whole, const Shard& box, std::span<const float> from) {
  const Shape &all = box.global, &part = box.local;
  whole.resize(std::size_t(all.elements()));
  const std::int64_t row = part[-1];
  const std::int64_t rows = row > 0 ? part.elements() / row : 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t at = 0, left = r, step = 1;
    for (int i = part.rank() - 1; i >= 0; --i) {
      const std::int64_t place = i == part.rank() - 1 ? 0 : left % part[i];
      if (i < part.rank() - 1) left /= part[i];
      at += (box.offset[i] + place) * step;
      step *= all[i];
    }
    std::copy_n(from.begin() + r * row, row, whole.begin() + at);
  }
}

void collect(const Weights& weights, Trained::Tensors& into, std::mutex& mutex) {
  weights.each_master([&](const Held& held) {
    const std::vector<float> memory = to_host<float>(held.memory);
    const std::lock_guard lock(mutex);
    for (const Piece& piece : held.pieces)
      place(into[held.name], piece.where, std::span(memory).subspan(std::size_t(piece.at)));
  });
}

/// Whichever of two texts is the longer one stays it.
void shrink_lengths(ModelConfig& m, const TrainConfig& asked) {
  const ParallelConfig& p = asked.parallel;
  const std::int64_t unit = std::int64_t{2} * p.cp * p.tp;
  m.sequence = (32 + unit - 1) / unit * unit;
  if (asked.model.decoder_layers > 0) {
    const std::int64_t encoder = asked.model.sequence, decoder = asked.model.decoder_sequence;
    m.decoder_sequence = m.sequence + (decoder > encoder ? unit : 0);
    m.sequence += encoder > decoder ? unit : 0;
  }
  m.max_positions = std::max(m.sequence, m.decoder_sequence);
}

/// Where these are, groups and channels follow from them.
void shrink_latents(ModelConfig& m, const TrainConfig& asked) {
  if (!asked.model.latent.on) return;
  m.groups = 0;
  m.channels = 0;
  m.latent = {.on = true,
              .query_rank = asked.model.latent.query_rank > 0 ? 24 : 0,
              .rank = 24,
              .plain_channels = 16,
              .turned_channels = 8,
              .value_channels = 16};
}

/// As many groups of a state space as ranks cut and trade.
void shrink_states(ModelConfig& m, const TrainConfig& asked) {
  if (parts_in_all(asked.model, LayerPart::state) == 0) return;
  const int groups = std::max(asked.parallel.tp * asked.parallel.cp, 2);
  m.state = {.heads = 2 * groups, .groups = groups, .channels = 16, .head_channels = 16};
}

/// Hundreds of experts would be a large model; groups of them say how many there are.
void shrink_experts(ModelConfig& m, const TrainConfig& asked) {
  ExpertsConfig& x = m.experts;
  if (x.count == 0 || x.router.groups > 0) return;
  x.count = std::min(x.count, int(round_up(std::max(16, 2 * x.router.chosen), asked.parallel.ep)));
  for (std::int64_t* width : {&x.ffn_hidden, &x.shared_hidden}) *width = std::min(*width, m.ffn_hidden);
}

/// Of layers that are not alike, one of each kind and then the same again.
std::string some_of(const std::string& letters, int layers) {
  std::string kinds;
  for (const char letter : letters)
    if (kinds.find(letter) == std::string::npos) kinds += letter;
  std::string out;
  for (int layer = 0; layer < layers; ++layer) out += kinds[std::size_t(layer) % kinds.size()];
  return out;
}
void keep_some(std::vector<int>& which, int layers) {
  if (which.empty()) return;
  which.resize(std::size_t(layers), 1);
  if (std::ranges::count(which, 1) == 0) which.back() = 1;
}

/// What is said of each layer, of as many as there are now; so many stages share them evenly.
void keep_layers(ModelConfig& m, int stages) {
  if (m.hybrid.on() && std::ssize(m.hybrid.layers) != m.layers) {
    const int kinds = int(std::set(m.hybrid.layers.begin(), m.hybrid.layers.end()).size());
    while (m.layers < kinds) m.layers += stages;
    m.hybrid.layers = some_of(m.hybrid.layers, m.layers);
    return;  // and what follows from them
  }
  for (std::vector<int>* which : {&m.window_layers, &m.experts.layers, &m.delta.layers})
    keep_some(*which, m.layers);
}

// Heads and groups stay what the layout can cut; a head is 16 channels wide.
void shrink_model(ModelConfig& m, const TrainConfig& asked) {
  const ParallelConfig& p = asked.parallel;
  const int share = p.tp * trading_ranks(p);
  const int per_group = std::min(asked.model.heads / asked.model.groups, 4);
  m.groups = asked.model.groups % p.tp == 0 ? std::max(share, 2) : asked.model.groups;
  m.heads = std::lcm(m.groups * per_group, p.tp);
  m.channels = 16;
  m.hidden = 16 * m.heads;
  m.ffn_hidden = 2 * m.hidden;
  m.vocabulary = 250;  // of no ranks a multiple
  m.padded_vocabulary = 0;
  shrink_lengths(m, asked);
  if (m.window > 0) m.window = m.sequence / 3;
  const bool counted = !p.layout.empty() || p.first_stage_layers > 0 || p.last_stage_layers > 0;
  if (!counted) m.layers = std::max(2, p.pp * std::max(p.virtual_stages, 1));
  if (!asked.parallel.context_layers.empty()) m.layers = asked.model.layers + asked.model.decoder_layers;
  if (asked.model.decoder_layers > 0) {
    const bool kept = counted || !asked.parallel.context_layers.empty();
    m.decoder_layers = kept ? asked.model.decoder_layers : m.layers / 2;
    m.layers = kept ? asked.model.layers : m.layers - m.decoder_layers;
  }
  shrink_latents(m, asked);
  shrink_states(m, asked);
  shrink_experts(m, asked);
  keep_layers(m, p.pp * std::max(p.virtual_stages, 1));
  m.recompute.layers = std::min(m.recompute.layers, m.layers + m.decoder_layers);
  m.rotary.original_positions = std::min(m.rotary.original_positions, m.sequence);
}

}  // namespace

TrainConfig shrunk(const TrainConfig& asked, TrainConfig raw) {
  TrainConfig c = std::move(raw);
  shrink_model(c.model, asked);
  c.parallel = asked.parallel;
  c.parallel.virtual_stage_layers = 0;
  if (!c.parallel.layout.empty()) c.parallel.virtual_stages = ParallelConfig().virtual_stages;  // it says so
  c.data = {};
  c.data.mock = true;
  const int round = std::max(asked.parallel.microbatch_group, asked.parallel.pp);
  c.batch = {.micro = std::min<std::int64_t>(asked.batch.micro, 2),
             .per_token_loss = asked.batch.per_token_loss};
  c.batch.global = c.batch.micro * sample_ranks(asked.parallel) * round * (asked.parallel.pp > 1 ? 2 : 1);
  c.length = {.iterations = steps};
  c.rate = {.peak = 1e-2, .style = RateStyle::constant};
  // A gradient that is zero but for rounding must not become a step of Adam's.
  c.optimizer.epsilon = 1e-2;
  c.checkpoint = {};
  c.eval = {.iterations = 0};
  c.log = {.interval = 1};
  c.guard = {};
  c.exit = {};
  c.run.ranks = all_ranks(asked.parallel);
  c.run.sample_prompt.clear();
  complete(c, c.run.ranks);
  return c;
}

TrainConfig alone(const TrainConfig& small) {
  TrainConfig c = small;
  c.parallel = {.dp = 1};
  if (c.model.experts.count > 0) c.parallel.etp = 1;
  c.run.ranks = 1;
  return c;
}

TrainConfig in_f32(const TrainConfig& small) {
  TrainConfig c = small;
  c.model.precision = Precision::f32;
  c.model.fp8 = {};
  c.scaling = {};
  return c;
}

Trained train_small(const TrainConfig& small, PlainCalls* plain_calls, const Disturbance& disturbance) {
  Trained out;
  std::mutex mutex;
  const Log log(0, {.least = Level::warning, .stamped = false});
  std::vector<std::unique_ptr<report::Sink>> sinks;
  sinks.push_back(std::make_unique<Losses>(out.losses));
  report::Outlet outlet(std::move(sinks), std::size_t(2 * steps), [](const std::string&) {});
  const RunData data = open_run_data(small);
  const ParallelLayout layout = layout_of(small.parallel);
  const auto trials = new_trials();
  run_as_threads(layout.world(), [&](Communicator& world) {
    RankDevice here(small.run.device,
                    {.threads = 1,
                     .exact = small.model.exact,
                     .trials = trials,
                     .plain_calls = plain_calls,
                     .place = world.rank()},
                    world);
    const ProcessMesh mesh(layout, here.world());
    Trainer trainer(
        small, data,
        {.device = here.device(), .mesh = mesh, .log = log, .outlet = world.rank() == 0 ? &outlet : nullptr});
    if (disturbance.share > 0) disturb(trainer.replica().weights(), disturbance);
    collect(trainer.replica().weights(), out.before, mutex);
    (void)trainer.run();
    collect(trainer.replica().weights(), out.after, mutex);
  });
  outlet.drain();
  return out;
}

std::map<std::string, double> moved_by_rounding(const TrainConfig& small, const Trained& one,
                                                const std::vector<Comparison>& different) {
  TrainConfig c = alone(small);
  c.scaling.sum_in_bf16 |= c.scaling.reduce_in_bf16;
  std::map<std::string, double> out;
  for (const Comparison& group : different) out[group.group] = 0;
  const auto excused = [&](const Comparison& each) { return may_be_rounding(each, out, allowed(small)); };
  // Eight times what rounds one of eight otherwise: as far as a weight of fewer bits is from its master.
  Disturbance disturbance{.share = 8 * least_disturbance(c.model.precision)};
  for (; disturbance.time < 4 && !std::ranges::all_of(different, excused); ++disturbance.time)
    for (const Comparison& other : compare(train_small(c, nullptr, disturbance), one))
      out[other.group] = std::max(out[other.group], 2 * other.difference);
  return out;
}

}  // namespace weft::cli
