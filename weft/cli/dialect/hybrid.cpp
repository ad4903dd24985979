// Megatron's flags: layers that are one thing each, and the state spaces among them.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {
namespace {

void set(Fields& fields, std::string_view path, const std::string& word, Origin who) {
  fields.at(path).read(std::vector{word}, who);
}

/// Another flag of the same source said it, too.
bool said_too(const Fields& fields, std::string_view path, Origin who) {
  return fields.at(path).origin() == who;
}

/// "M-*|M-" and two further tokens as a layout: "Ettt|ttmmL".
std::string layout_of(const std::string& letters, std::size_t further) {
  std::string out = "E";
  for (const char letter : letters) out += letter == '|' ? '|' : 't';
  return out + std::string(further, 'm') + "L";
}

/// Latent attention is a setting of the whole model.
std::string with_latents_as_attention(Fields& fields, std::string letters, Origin who) {
  if (letters.find('D') != std::string::npos)
    fail(Kind::usage, "'", letters, "' has layers of sparse attention, D, which weft cannot do yet");
  if (letters.find('+') == std::string::npos) return letters;
  if (letters.find('*') != std::string::npos)
    fail(Kind::usage, "'", letters,
         "' has layers of latent attention, +, and of the other, *: take one of them");
  std::ranges::replace(letters, '+', '*');
  set(fields, "model.latent.on", "true", who);
  return letters;
}

/// Letters behind a slash, the same behind each, guess a further token.
void further_tokens(Fields& fields, const std::vector<std::string_view>& parts, Origin who) {
  for (std::size_t i = 2; i < parts.size(); ++i)
    if (parts[i] != parts[1])
      fail(Kind::usage, "further tokens are guessed by layers that are alike, found '", parts[1], "' and '",
           parts[i], "'");
  set(fields, "model.hybrid.ahead", std::string(parts[1]), who);
  const std::string depths = std::to_string(parts.size() - 1);
  const auto& given = fields.at("model.ahead.depths");
  if (given.origin() == who && given.write() != std::vector{depths})
    fail(Kind::usage, "there are ", depths,
         " parts behind a slash, one a further token, and --mtp-num-layers says ", given.write().front());
  set(fields, "model.ahead.depths", depths, who);
}

void hybrid_layers(Fields& fields, std::span<const std::string> words, Origin who) {
  const std::string all = with_latents_as_attention(fields, words[0], who);
  std::vector<std::string_view> parts = split(all, '/');
  while (parts.size() > 1 && parts.back().empty()) parts.pop_back();
  std::string letters(parts[0]);
  if (parts.size() > 1) further_tokens(fields, parts, who);
  if (letters.find('|') != std::string::npos) {
    if (said_too(fields, "parallel.layout", who))
      fail(Kind::usage,
           "'|' cuts layers into stages, and so does --pipeline-model-parallel-layout: leave one of "
           "them out");
    set(fields, "parallel.layout", layout_of(letters, parts.size() - 1), who);
    std::erase(letters, '|');
  }
  set(fields, "model.hybrid.layers", letters, who);
  if (!said_too(fields, "model.layers", who))
    set(fields, "model.layers", std::to_string(letters.size()), who);
}

}  // namespace

Group hybrid() {
  return {
      "Layers of one thing each",
      {
          parsed("hybrid-layer-pattern", Arity::one, "model.hybrid.layers", hybrid_layers,
                 "a letter a layer that is one thing: M a state space, G the gated delta rule, * attention, "
                 "+ latent attention, - an MLP, E experts; | parts stages of a pipeline, and what stands "
                 "behind each / guesses a further token"),
          parsed("hybrid-override-pattern", Arity::one, "model.hybrid.layers", hybrid_layers,
                 "the old spelling of --hybrid-layer-pattern"),
          value("mtp-hybrid-override-pattern", "model.hybrid.ahead"),
          value("mamba-num-heads", "model.state.heads"),
          value("mamba-head-dim", "model.state.head_channels"),
          value("mamba-state-dim", "model.state.channels"),
          value("mamba-num-groups", "model.state.groups"),
          value("mamba-conv-kernel-dim", "model.state.taps"),
          value("mamba-norm-epsilon", "model.state.norm_epsilon"),
          no_effect("is-hybrid-model", Arity::none, "--hybrid-layer-pattern says it"),
          no_effect("disable-mamba-mem-eff-path", Arity::none, "there is one path"),
          no_effect("mamba-training-ssm-states-dtype", Arity::one, "memories are f32"),
      }};
}

}  // namespace weft::cli::dialect
