// The few flags whose words need arithmetic before they are a field's.
#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "weft/backend/open.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {
namespace {

using Words = std::vector<std::string>;

void set(Fields& fields, std::string_view path, const Words& words, Origin who) {
  fields.at(path).read(words, who);
}

bool is(const Fields& fields, std::string_view path, std::string_view word) {
  return fields.at(path).write() == Words{std::string(word)};
}

// list = term { "+" term };  term = ( "[" numbers "]" | "(" list ")" ) { "*" number }
class Pattern {
 public:
  explicit Pattern(std::string_view from) : all_(from) {
    for (const char c : from)
      if (!std::isspace(static_cast<unsigned char>(c))) text_ += c;
  }
  std::vector<int> read() {
    const std::vector<int> out = list(0);
    if (at_ != text_.size()) wrong();
    return out;
  }

 private:
  static constexpr std::size_t most = 100'000;

  [[noreturn]] void wrong() const {
    fail(Kind::usage, "'", all_, "' is neither a whole number nor a list such as ([0]*3+[1]*5)");
  }
  bool next(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  int number() {
    const std::size_t from = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
    if (from == at_ || at_ - from > 6) wrong();
    return std::stoi(text_.substr(from, at_ - from));
  }
  std::vector<int> list(int depth) {
    std::vector<int> out = term(depth);
    while (next('+')) {
      const std::vector<int> more = term(depth);
      out.insert(out.end(), more.begin(), more.end());
    }
    return out;
  }
  std::vector<int> term(int depth) {
    if (depth > 20) wrong();
    std::vector<int> out;
    if (next('(')) {
      out = list(depth + 1);
      if (!next(')')) wrong();
    } else if (next('[')) {
      do out.push_back(number());
      while (next(','));
      if (!next(']')) wrong();
    } else {
      wrong();
    }
    while (next('*')) out = repeated(out, number());
    return out;
  }
  std::vector<int> repeated(const std::vector<int>& once, int times) const {
    if (once.size() * static_cast<std::size_t>(times) > most) wrong();
    std::vector<int> out;
    for (int i = 0; i < times; ++i) out.insert(out.end(), once.begin(), once.end());
    return out;
  }

  std::string_view all_;
  std::string text_;
  std::size_t at_ = 0;
};

// "(127, 0)", "127,0" and "127 0" are two numbers.
std::vector<std::int64_t> numbers(std::span<const std::string> words) {
  std::vector<std::int64_t> out;
  for (const std::string& word : words)
    for (std::size_t i = 0; i < word.size();) {
      const std::size_t from = word.find_first_not_of("(), ", i);
      if (from == std::string::npos) break;
      i = std::min(word.find_first_of("(), ", from), word.size());
      read_word(std::string_view(word).substr(from, i - from), out.emplace_back());
    }
  return out;
}

}  // namespace

std::vector<int> read_pattern(std::string_view from) {
  const bool plain =
      !from.empty() && std::all_of(from.begin(), from.end(), [](unsigned char c) { return std::isdigit(c); });
  if (!plain) return Pattern(from).read();
  int n = 0;
  read_word(from, n);
  return {n};
}

void no_learned_positions(Fields& fields, std::span<const std::string>, Origin who) {
  if (is(fields, "model.positions", "learned")) set(fields, "model.positions", {"none"}, who);
}

void linear_scaling(Fields& fields, std::span<const std::string> words, Origin who) {
  set(fields, "model.rotary.factor", {words.begin(), words.end()}, who);
  set(fields, "model.rotary.scaling", {"linear"}, who);
}

// Megatron's latent attention stretches angles as YaRN does where nothing else is said; by a factor of 1 that
// is no stretching.
void latent_attention(Fields& fields, std::span<const std::string>, Origin who) {
  set(fields, "model.latent.on", {"true"}, who);
  const bool said = fields.at("model.rotary.scaling").origin() != Origin::built_in;
  if (!said && !is(fields, "model.rotary.factor", "1")) set(fields, "model.rotary.scaling", {"yarn"}, who);
}

// Llama 3 was trained on 8192 positions and stretched eight times.
void llama3_scaling(Fields& fields, std::span<const std::string>, Origin who) {
  set(fields, "model.rotary.scaling", {"llama3"}, who);
  if (is(fields, "model.rotary.factor", "1")) set(fields, "model.rotary.factor", {"8"}, who);
  if (is(fields, "model.rotary.original_positions", "0"))
    set(fields, "model.rotary.original_positions", {"8192"}, who);
}

void exact_gelu(Fields& fields, std::span<const std::string>, Origin who) {
  if (is(fields, "model.activation", "gelu")) set(fields, "model.activation", {"gelu_erf"}, who);
}

void query_groups(Fields& fields, std::span<const std::string>, Origin who) {
  if (is(fields, "model.groups", "0")) set(fields, "model.groups", {"1"}, who);
}

void qkv_bias(Fields& fields, std::span<const std::string>, Origin who) {
  set(fields, "model.qkv_bias", {"true"}, who);
}

void window(Fields& fields, std::span<const std::string> words, Origin who) {
  const auto sides = numbers(words);
  if (sides.size() != 2) fail(Kind::usage, "expected two numbers, left and right, found ", sides.size());
  if (sides[1] > 0) fail(Kind::usage, "a causal model sees nothing to the right, found ", sides[1]);
  if (sides[0] < -1) fail(Kind::usage, "a window reaches 0 or more to the left (-1: all), found ", sides[0]);
  const std::int64_t seen = sides[0] < std::int64_t(legal::size_limit) ? sides[0] + 1 : sides[0];
  set(fields, "model.window", {write_word(seen)}, who);
}

namespace {

struct Patterned {
  const char *every, *layers;
};
/// A number of layers from one to the next, or a list with an entry for each; true: the former.
bool layers_by_pattern(Fields& fields, std::span<const std::string> words, const Patterned& to, Origin who) {
  if (words.size() != 1) fail(Kind::usage, "expected one value, found ", words.size());
  const auto pattern = read_pattern(words[0]);
  Words all;
  for (const int layer : pattern) all.push_back(write_word(layer));
  const bool every = words[0].find('[') == std::string::npos;
  set(fields, every ? to.every : to.layers, all, who);
  if (every) set(fields, to.layers, {}, who);  // a list that a file gave, and that would win
  return every;
}

}  // namespace

void unturned_layers(Fields& fields, std::span<const std::string> words, Origin who) {
  layers_by_pattern(fields, words, {"model.rotary.skip_every", "model.rotary.skip_layers"}, who);
}

void window_layers(Fields& fields, std::span<const std::string> words, Origin who) {
  layers_by_pattern(fields, words, {"model.window_full_every", "model.window_layers"}, who);
}

void delta_layers(Fields& fields, std::span<const std::string> words, Origin who) {
  layers_by_pattern(fields, words, {"model.delta.attends_every", "model.delta.layers"}, who);
}

// A flag before it may have begun elsewhere.
void expert_layers(Fields& fields, std::span<const std::string> words, Origin who) {
  if (layers_by_pattern(fields, words, {"model.experts.every", "model.experts.layers"}, who))
    set(fields, "model.experts.first", {"0"}, who);
}

// Megatron-DeepSpeed takes a number for each layer of experts, and one for all.
void expert_count(Fields& fields, std::span<const std::string> words, Origin who) {
  const auto all = numbers(words);
  if (all.empty() || std::ranges::adjacent_find(all, std::ranges::not_equal_to()) != all.end())
    fail(Kind::usage,
         "layers of experts that are not alike (a pyramid) are not built: give one number, found ",
         join(words, " "));
  set(fields, "model.experts.count", {write_word(all.front())}, who);
}

// Counted from 1, where --moe-layer-freq counts from 0.
void expert_interval(Fields& fields, std::span<const std::string> words, Origin who) {
  const auto every = numbers(words);
  if (every.size() != 1 || every[0] < 1 || every[0] > std::int64_t(legal::size_limit))
    fail(Kind::usage, "expected one number of 1 or more");
  if (fields.at("model.experts.layers").origin() == who)
    fail(Kind::usage, "--moe-layer-freq says which layers have experts, too: leave one of them out");
  set(fields, "model.experts.every", {write_word(every[0])}, who);
  set(fields, "model.experts.first", {write_word(every[0] - 1)}, who);
  set(fields, "model.experts.layers", {}, who);  // as above
}

// A capacity goes with dropping, as in DeepSpeed.
void all_tokens(Fields& fields, std::span<const std::string>, Origin who) {
  set(fields, "model.experts.router.capacity", {}, who);
  set(fields, "model.experts.router.capacity_evaluating", {}, who);
}

// One word, or as many as a shell made of it that was not told to keep them together.
void batch_steps(Fields& fields, std::span<const std::string> words, Origin who) {
  set(fields, "batch.schedule", {join(words, " ")}, who);
}

// One word is for all layers.
void computes_on(Fields& fields, std::span<const std::string> words, Origin who) {
  constexpr std::array processors{"cpu", "cpu:fast", "cpu:onednn", "cpu:reference"};
  const std::string& word = words.front();
  if (word == "meta")
    fail(Kind::usage, "meta only counts, and nothing can be trained on it; --dry-run counts");
  if (std::find(processors.begin(), processors.end(), word) == processors.end() && !names_gpu(word))
    fail(Kind::usage, "'", word, "' is not one of ", join(Words(processors.begin(), processors.end()), ", "),
         ", cuda or cuda:N");
  set(fields, "run.device", {word}, who);
}

void context_forms(Fields& fields, std::span<const std::string> words, Origin who) {
  struct Known {
    std::string_view theirs, ours;
  };
  constexpr std::array known{Known{"p2p", "ring"}, Known{"all_gather", "gather"},
                             Known{"allgather", "gather"}, Known{"a2a", "heads"},
                             Known{"a2a+p2p", "two_levels"}};
  Words ours;
  for (const std::string& word : words) {
    const auto at =
        std::find_if(known.begin(), known.end(), [&](const Known& k) { return k.theirs == word; });
    if (at == known.end()) fail(Kind::usage, "'", word, "' is not one of p2p, all_gather, a2a or a2a+p2p");
    ours.emplace_back(at->ours);
  }
  if (ours.size() != 1) set(fields, "parallel.context_layers", ours, who);
  if (ours.size() == 1) set(fields, "parallel.context", ours, who);
}

namespace {

/// Whether another flag has said how far data-parallel ranks cut up what they hold.
bool cut_is_said(Fields& fields, Origin who) { return fields.at("parallel.zero").origin() == who; }

}  // namespace

void megatron_fsdp(Fields& fields, std::span<const std::string>, Origin who) {
  if (!cut_is_said(fields, who)) set(fields, "parallel.zero", {"3"}, who);
}

// At least the states: scripts say so beside a flag that cuts more.
void distributed_optimizer(Fields& fields, std::span<const std::string>, Origin who) {
  if (!cut_is_said(fields, who)) return set(fields, "parallel.zero", {"1"}, who);
  if (fields.at("parallel.zero").write() == Words{"0"})
    fail(Kind::usage, "optimizer states are to be cut over ranks, and another flag says that nothing is");
}

// Both lie in --save: what --save-interval saves stays, and of what is saved in between the newest.
void rolling_saves(Fields& fields, std::span<const std::string> words, Origin who) {
  if (fields.at("checkpoint.retain_interval").origin() == who)
    fail(Kind::usage, "--save-retain-interval says which checkpoints stay, too: leave one of them out");
  const Words kept = fields.at("checkpoint.interval").write();
  const std::int64_t stays = numbers(kept).front();
  const auto rolls = numbers(words);
  if (rolls.size() != 1 || rolls[0] < 1) fail(Kind::usage, "expected one number of 1 or more");
  if (stays % rolls[0] != 0)
    fail(Kind::usage, "--save-interval ", stays,
         " is not a multiple of it: saves of both kinds lie in --save");
  if (stays > 0)
    set(fields, "checkpoint.retain_interval", kept, who);
  else if (is(fields, "checkpoint.keep_last", "0"))
    set(fields, "checkpoint.keep_last", {"1"}, who);
  set(fields, "checkpoint.interval", {words.begin(), words.end()}, who);
}

void recompute_modules(Fields& fields, std::span<const std::string> words, Origin who) {
  struct Known {
    std::string_view theirs, ours;
  };
  constexpr std::array known{Known{"core_attn", "core_attention"},
                             Known{"layernorm", "norm"},
                             Known{"mlp", "mlp"},
                             Known{"mla_up_proj", "latent_heads"},
                             Known{"moe", "experts"},
                             Known{"moe_act", ""},  // it is never kept
                             Known{"gdn_norm_out", ""},
                             Known{"shared_experts", "shared_experts"}};
  Words ours;
  for (const std::string& word : words) {
    const auto at =
        std::find_if(known.begin(), known.end(), [&](const Known& k) { return k.theirs == word; });
    if (at == known.end())
      fail(Kind::usage, "'", word,
           "' is not one of core_attn, layernorm, mlp, mla_up_proj, moe, moe_act, gdn_norm_out or "
           "shared_experts");
    if (!at->ours.empty()) ours.emplace_back(at->ours);
  }
  set(fields, "model.recompute.modules", ours, who);
}

}  // namespace weft::cli::dialect
