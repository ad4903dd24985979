// weft selftest: does my layout train as one rank does? The model is shrunk until that takes seconds.
#include "weft/cli/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>

#include "weft/base/error.h"
#include "weft/cli/dialect.h"
#include "weft/cli/gpu_run.h"
#include "weft/cli/verbs.h"
#include "weft/model/kinds.h"
#include "weft/train/resume.h"
#include "weft/train/validate.h"

namespace weft::cli {
namespace {

/// "layers.3.mlp.up.weight" of all layers: "layers.*.mlp.up.weight"; "decoder.layers.3.…" likewise, and
/// experts: which of them another rounding chooses is chance.
std::string group_of(std::string name) {
  for (const std::string_view word : {"layers.", "experts."}) {
    const auto at = name.find(word);
    if (at == std::string::npos) continue;
    const auto number = at + word.size();
    name.replace(number, std::min(name.find('.', number), name.size()) - number, "*");
  }
  return name;
}

double largest_gap(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double gap = std::abs(double(a[i]) - double(b[i]));
    most = std::isnan(gap) ? INFINITY : std::max(most, gap);
  }
  return most;
}

double largest(const std::vector<float>& values) {
  double most = 0;
  for (const float x : values) most = std::max(most, std::abs(double(x)));
  return most;
}

const std::vector<float>& in(const Trained::Tensors& tensors, const std::string& name) {
  static const std::vector<float> nothing;
  const auto found = tensors.find(name);
  return found == tensors.end() ? nothing : found->second;
}

std::string words_for(const ParallelConfig& p) {
  std::string out;
  const auto say = [&out](const std::string& word) { out += (out.empty() ? "" : " · ") + word; };
  const auto degree = [&](const char* axis, int n) {
    if (n > 1) say(fmt::format("{} {}", axis, n));
  };
  degree("tensor", p.tp);
  if (p.sequence) say("sequence cut");
  degree("context", p.cp);
  degree("pipeline", p.pp);
  degree("virtual stages", p.virtual_stages);
  if (!p.schedule.empty()) say(p.schedule);
  degree("data", p.dp);
  if (p.zero > 0) say("states cut");
  return out.empty() ? "one rank" : out;
}

std::string lengths_of(const ModelConfig& m) {
  if (m.decoder_layers == 0) return fmt::format("{} tokens", m.sequence);
  return fmt::format("{} tokens for the encoder and {} for the decoder", m.sequence, m.decoder_sequence);
}

const char* verdict(const Comparison& c, double within) {
  if (!c.started_alike) return "starts from other numbers";
  return alike(c, within) ? "the same" : "DIFFERS";
}

/// Of a column of names: those of a model with two stacks are long.
std::size_t width_of(const std::vector<Comparison>& all) {
  std::size_t width = 34;
  for (const Comparison& c : all) width = std::max(width, c.group.size());
  return width;
}

void tell(const std::vector<Comparison>& all, double within) {
  const std::size_t width = width_of(all);
  std::cout << fmt::format("\n{:<{}}{:>12}{:>12}{:>10}\n", "parameters", width, "changed by", "differ by",
                           "share");
  for (const Comparison& c : all)
    std::cout << fmt::format("{:<{}}{:>12.2e}{:>12.2e}{:>10.1e}  {}\n", c.group, width, c.change,
                             c.difference, c.share(), verdict(c, within));
}

/// Both trainings, and what of their parameters differs.
struct Compared {
  Trained one;
  std::vector<Comparison> different;
};

/// Tells of all parameters.
Compared compared(const TrainConfig& small) {
  const Trained cut = train_small(small);
  Compared out{train_small(alone(small)), {}};
  const double within = allowed(small);
  const std::vector<Comparison> all = compare(cut, out.one);
  tell(all, within);
  std::cout << fmt::format("loss {:.6f} and {:.6f} after {} steps\n", cut.losses.back(),
                           out.one.losses.back(), small.length.iterations);
  std::ranges::copy_if(all, std::back_inserter(out.different),
                       [&](const Comparison& c) { return !alike(c, within); });
  return out;
}

bool rounds(const TrainConfig& small) {
  return !small.model.exact && (small.model.precision != Precision::f32 || small.scaling.reduce_in_bf16);
}

// A mistake may be there in few bits alone, so that the same is well in f32 excuses only what rounding moves
// one rank by.
bool moved_no_further(const TrainConfig& small, const Compared& in_few_bits) {
  const auto moved = moved_by_rounding(small, in_few_bits.one, in_few_bits.different);
  bool good = true;
  const std::size_t width = width_of(in_few_bits.different);
  std::cout << "\nand what differed may do so by:\n";
  for (const Comparison& c : in_few_bits.different) {
    const bool excused = may_be_rounding(c, moved, allowed(small));
    std::cout << fmt::format("{:<{}}{:>24.2e}  {}\n", c.group, width, moved.at(c.group),
                             excused ? "is rounding" : "MORE THAN ROUNDING");
    good = good && excused;
  }
  return good;
}

bool trains_as_one_rank(const TrainConfig& small) {
  const Compared as_asked = compared(small);
  if (as_asked.different.empty()) return true;
  if (!rounds(small)) return false;
  std::cout << "\nwhere numbers are rounded to half of their bits or less, rounding alone may choose another "
               "expert, or the other side of a relu; so the same in f32:\n"
            << std::flush;
  return compared(in_f32(small)).different.empty() && moved_no_further(small, as_asked);
}

/// What the model reads, and how long and how fast it learns, so nobody need say it.
void make_up(TrainConfig& asked) {
  constexpr std::int64_t words = 250, some_steps = 1000;
  asked.data = {};
  asked.data.mock = true;
  if (asked.model.vocabulary == 0) asked.model.vocabulary = words;
  const LengthConfig& l = asked.length;
  if (l.iterations == 0 && l.samples == 0 && l.tokens == 0) asked.length.iterations = some_steps;
  if (asked.batch.micro == 0) asked.batch.micro = 1;
  if (!asked.rate.peak) asked.rate.peak = 1e-3;
}

int run_selftest(Args args) {
  if (args.empty() || !find_kind(args[0]))
    fail(Kind::usage, "selftest: name the model and its flags: weft selftest gpt --ranks 4 …");
  const auto asked = read_command(args.subspan(1), settings_of_checkpoint);
  const auto raw = read_command(args.subspan(1), settings_of_checkpoint);
  asked->config.model.kind = raw->config.model.kind = args[0];
  if (!asked->others.empty())
    fail(Kind::usage, "selftest: '", asked->others[0], "' follows no flag that takes it");
  make_up(asked->config);
  settle_by_ranks(*asked, 0);
  complete(asked->config, 0);
  must_carry(asked->config);
  must_be_here(asked->config.run.device);
  const TrainConfig small = shrunk(asked->config, raw->config);
  const ModelConfig& m = small.model;
  std::cout << fmt::format("{} layers of {} channels and {} heads, {}: your model, made small\n",
                           m.layers + m.decoder_layers, m.hidden, m.heads, lengths_of(m))
            << words_for(small.parallel) << ", against one rank, " << small.length.iterations << " steps\n"
            << std::flush;
  const bool good = trains_as_one_rank(small);
  std::cout << (good ? "the layout trains as one rank does\n"
                     : "the layout does NOT train as one rank does\n");
  return static_cast<int>(good ? Exit::done : Exit::failed);
}

VerbHelp about_selftest() {
  return {
      .usage = text("weft selftest ", kinds_to_choose(), " [the flags of weft train]"),
      .examples = {{"weft selftest gpt --config examples/llama2_7b.yaml --tensor-model-parallel-size 2 "
                    "--pipeline-model-parallel-size 2 --ranks 8",
                    "a small Llama on eight thread ranks against one"}},
      .topics = {
          {"What it does",
           {{"", "",
             "keeps layout, precision, optimizer and kind of model; makes every size small; "
             "trains on made-up data under the layout and on one rank; compares every parameter. Where they "
             "differ in fewer bits than f32's, they must agree in f32, and differ by no more than one rank "
             "does from itself where its weights are rounded otherwise. Exit status 1 where they differ by "
             "more than rounding"}}}}};
}

}  // namespace

std::vector<Comparison> compare(const Trained& cut, const Trained& one) {
  std::map<std::string, Comparison> groups;
  for (const auto& [name, after] : one.after) {
    Comparison& group = groups[group_of(name)];
    group.group = group_of(name);
    group.change = std::max(group.change, largest_gap(after, in(one.before, name)));
    group.difference = std::max(group.difference, largest_gap(in(cut.after, name), after));
    group.spacing = std::max(group.spacing, largest(after) * 0x1p-23);
    group.started_alike = group.started_alike && in(cut.before, name) == in(one.before, name);
  }
  std::vector<Comparison> all;
  for (auto& [name, group] : groups) all.push_back(group);
  return all;
}

/// What was hardly changed cannot differ by less than floats do; in exact mode nothing may.
bool alike(const Comparison& c, double within) {
  const bool next_to_each_other = within > 0 && c.difference <= 2 * c.spacing;
  return c.started_alike && std::isfinite(c.difference) && (next_to_each_other || c.share() <= within);
}

bool may_be_rounding(const Comparison& c, const std::map<std::string, double>& moved, double within) {
  if (alike(c, within)) return true;
  return c.started_alike && c.difference <= std::min(moved.at(c.group), c.change);
}

// Seen: 1e-6 in f32, 1e-2 in bf16, 4e-3 where gradients travel in bf16; a mistake in a layout comes to a
// tenth and more.
double allowed(const TrainConfig& small) {
  if (small.model.exact) return 0;
  return small.model.precision == Precision::f32 && !small.scaling.reduce_in_bf16 ? 1e-4 : 0.05;
}

Verb selftest_verb() {
  return {"selftest", "compares a layout with one rank, on a small model", run_selftest, about_selftest};
}

}  // namespace weft::cli
