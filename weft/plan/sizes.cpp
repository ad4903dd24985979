// Which sizes make a run large, and what each is with half of it.
#include "weft/plan/changes.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/train/ranks.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"

namespace weft {
namespace {

/// Half of a size, as a multiple of a unit that is at least one unit; false where that is no less.
template <class Size>
bool halve(Size& size, std::int64_t unit) {
  const auto half = Size(std::max(std::int64_t{size} / 2 / unit * unit, unit));
  if (half >= size) return false;
  size = half;
  return true;
}

/// A width that follows another one, as a part of it.
std::int64_t scaled(std::int64_t width, double by, std::int64_t unit) {
  return std::max(std::int64_t(double(width) * by) / unit * unit, unit);
}

/// Eighths are what exact mode adds.
std::int64_t unit_of_widths(const TrainConfig& c) { return std::int64_t{8} * c.parallel.tp; }

/// Two stacks are as deep as each other, where nobody asks for more.
bool halve_layers(TrainConfig& c) {
  ModelConfig& m = c.model;
  const bool even = c.parallel.layout.empty() && c.parallel.first_stage_layers == 0 &&
                    c.parallel.last_stage_layers == 0 && m.window_layers.empty() && !m.hybrid.on() &&
                    c.parallel.context_layers.empty() &&
                    (m.decoder_layers == 0 || m.decoder_layers == m.layers);
  if (!even || !halve(m.layers, std::int64_t{c.parallel.pp} * std::max(c.parallel.virtual_stages, 1)))
    return false;
  if (m.decoder_layers > 0) m.decoder_layers = m.layers;
  for (std::vector<int>* each : {&m.experts.layers, &m.delta.layers})
    each->resize(std::min(each->size(), std::size_t(m.layers)));
  return m.experts.count == 0 || m.experts.layers_with() > 0;
}

/// Other widths are multiples of it.
bool halve_hidden(TrainConfig& c) {
  ModelConfig& m = c.model;
  const std::int64_t before = m.hidden;
  if (!halve(m.hidden, std::int64_t{8} * m.heads)) return false;
  const double by = double(m.hidden) / double(before);
  m.ffn_hidden = scaled(m.ffn_hidden, by, unit_of_widths(c));
  if (m.experts.ffn_hidden > 0) m.experts.ffn_hidden = scaled(m.experts.ffn_hidden, by, unit_of_widths(c));
  if (!m.latent.on) m.channels = scaled(m.channels, by, 8);
  return true;
}

bool halve_ffn(TrainConfig& c) {
  const bool followed = c.model.experts.ffn_hidden == c.model.ffn_hidden;
  if (!halve(c.model.ffn_hidden, unit_of_widths(c))) return false;
  if (followed) c.model.experts.ffn_hidden = c.model.ffn_hidden;
  return true;
}

bool halve_expert(TrainConfig& c) {
  return c.model.experts.count > 0 && halve(c.model.experts.ffn_hidden, unit_of_widths(c));
}

bool halve_channels(TrainConfig& c) { return !c.model.latent.on && halve(c.model.channels, 8); }

/// A tokenizer's words are as many as they are.
bool halve_vocabulary(TrainConfig& c) {
  const std::string& tokenizer = c.data.tokenizer.type;
  if (!tokenizer.empty() && tokenizer != "NullTokenizer") return false;
  const bool padded = c.model.padded_vocabulary > round_up(c.model.vocabulary, c.model.vocabulary_unit);
  if (!halve(c.model.vocabulary, unit_of_widths(c))) return false;
  if (!padded) c.model.padded_vocabulary = round_up(c.model.vocabulary, c.model.vocabulary_unit);
  return true;
}

/// Rows that are stored beyond the words.
bool halve_padding(TrainConfig& c) {
  const std::int64_t least = round_up(c.model.vocabulary, unit_of_widths(c)),
                     before = c.model.padded_vocabulary;
  if (before <= least) return false;
  c.model.padded_vocabulary = std::max(round_up(before / 2, unit_of_widths(c)), least);
  return c.model.padded_vocabulary < before;
}

/// As many as the sequence has, where nobody asks for more.
bool halve_sequence(TrainConfig& c) {
  const std::int64_t before = c.model.sequence;
  if (!halve(c.model.sequence, unit_of_widths(c) * c.parallel.cp)) return false;
  if (c.model.max_positions == before)
    c.model.max_positions = std::max(c.model.sequence, c.model.decoder_sequence);
  return true;
}

bool halve_decoder_sequence(TrainConfig& c) {
  return c.model.decoder_sequence > 0 && halve(c.model.decoder_sequence, unit_of_widths(c) * c.parallel.cp);
}

/// Only a table of them takes memory.
bool halve_positions(TrainConfig& c) {
  ModelConfig& m = c.model;
  const std::int64_t least = std::max(m.sequence, m.decoder_sequence);
  if (m.positions != Positions::learned || m.max_positions <= least) return false;
  m.max_positions = std::max(m.max_positions / 2, least);
  return true;
}

/// Whether stages can share out so few microbatches.
bool has_a_schedule(const TrainConfig& c) {
  try {
    (void)schedule_of(c.parallel, int(c.batch.global / (c.batch.micro * sample_ranks(c.parallel))));
  } catch (const Error&) {  // is the answer
    return false;
  }
  return true;
}

/// All samples of a step lie there at once; an evaluation's follow them, where nobody asks for others.
bool halve_batch(TrainConfig& c) {
  const bool steady = c.batch.rampup.empty() && c.batch.schedule.empty();
  const std::int64_t before = c.batch.global;
  if (!steady || !halve(c.batch.global, c.batch.micro * sample_ranks(c.parallel))) return false;
  if (!has_a_schedule(c)) return false;
  if (c.eval.global == before && c.batch.global % (c.eval.micro * sample_ranks(c.parallel)) == 0)
    c.eval.global = c.batch.global;
  return true;
}

bool halve_evaluation(TrainConfig& c) {
  return evaluates(c) && c.eval.global != c.batch.global &&
         halve(c.eval.global, c.eval.micro * sample_ranks(c.parallel));
}

/// A batch of one microbatch a rank: there was no {batch.global}, or one that says the same.
bool halve_microbatch(TrainConfig& c) {
  if (c.batch.global != c.batch.micro * sample_ranks(c.parallel) || c.eval.micro != c.batch.micro)
    return false;
  if (!halve(c.batch.micro, 1)) return false;
  c.eval.micro = c.batch.micro;
  c.batch.global = c.eval.global = c.batch.micro * sample_ranks(c.parallel);
  return true;
}

/// A size that a person may choose smaller.
struct RunSize {
  std::string (*flags)(const TrainConfig&);
  /// Halves it, rounded to what can be cut, and with it what follows from it; false where it is as small as
  /// it can be, or follows from something else.
  bool (*halve)(TrainConfig&);
};

/// The first of two that are as much to blame is named.
constexpr std::array sizes{
    RunSize{[](const TrainConfig& c) { return text("{model.layers} ", c.model.layers); }, halve_layers},
    RunSize{[](const TrainConfig& c) { return text("{model.hidden} ", c.model.hidden); }, halve_hidden},
    RunSize{[](const TrainConfig& c) { return text("{model.ffn_hidden} ", c.model.ffn_hidden); }, halve_ffn},
    RunSize{
        [](const TrainConfig& c) { return text("{model.experts.ffn_hidden} ", c.model.experts.ffn_hidden); },
        halve_expert},
    RunSize{[](const TrainConfig& c) { return text("{model.channels} ", c.model.channels); }, halve_channels},
    RunSize{[](const TrainConfig& c) { return text("{model.vocabulary} ", c.model.vocabulary); },
            halve_vocabulary},
    RunSize{
        [](const TrainConfig& c) { return text("{model.padded_vocabulary} ", c.model.padded_vocabulary); },
        halve_padding},
    RunSize{[](const TrainConfig& c) { return text("{model.max_positions} ", c.model.max_positions); },
            halve_positions},
    RunSize{[](const TrainConfig& c) { return text("{model.sequence} ", c.model.sequence); }, halve_sequence},
    RunSize{[](const TrainConfig& c) { return text("{model.decoder_sequence} ", c.model.decoder_sequence); },
            halve_decoder_sequence},
    RunSize{[](const TrainConfig& c) {
              return text("{batch.micro} ", c.batch.micro, " {batch.global} ", c.batch.global);
            },
            halve_microbatch},
    RunSize{[](const TrainConfig& c) { return text("{batch.global} ", c.batch.global); }, halve_batch},
    RunSize{[](const TrainConfig& c) { return text("{eval.global} ", c.eval.global); }, halve_evaluation},
};

}  // namespace

std::vector<Changes> changes_of_sizes(const TrainConfig& config) {
  std::vector<Changes> out;
  for (const RunSize& size : sizes) {
    Changes& changes = out.emplace_back();
    for (TrainConfig c = config; size.halve(c);) changes.push_back({size.flags(c), c});
  }
  return out;
}

}  // namespace weft
