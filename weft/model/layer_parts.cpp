#include "weft/model/layer_parts.h"

#include <algorithm>
#include <string_view>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr std::string_view letters = "MG*-E";

LayerPart part_of(char letter) {
  constexpr LayerPart parts[] = {LayerPart::state, LayerPart::delta, LayerPart::attention, LayerPart::mlp,
                                 LayerPart::experts};
  return parts[letters.find(letter)];
}

bool mixes_tokens(char letter) { return letters.find(letter) < 3; }

void check_letters(std::string_view setting, const std::string& pattern) {
  const std::size_t wrong = pattern.find_first_not_of(letters);
  if (wrong != std::string::npos)
    fail(Kind::usage, "model: ", setting, " '", pattern, "': '", pattern[wrong], "' at character ", wrong + 1,
         " is no layer; take M (a state space), G (the gated delta rule), * (attention), - (an MLP) or E "
         "(experts)");
}

/// A layer's parts are told apart by what they are.
void check_ahead(const ModelConfig& m) {
  const std::string& ahead = m.hybrid.ahead;
  if (m.ahead.depths == 0) {
    if (!ahead.empty())
      fail(Kind::usage,
           "model: {model.hybrid.ahead} says what guesses further tokens, and {model.ahead.depths} is 0");
    return;
  }
  if (ahead.empty())
    fail(Kind::usage,
         "model: nothing says what guesses further tokens where layers are one thing each: add "
         "{model.hybrid.ahead}");
  check_letters("{model.hybrid.ahead}", ahead);
  for (std::size_t i = 0; i < ahead.size(); ++i)
    if (ahead.find(ahead[i], i + 1) != std::string::npos)
      fail(Kind::usage, "model: {model.hybrid.ahead} '", ahead, "' has two layers of one kind, '", ahead[i],
           "', for a further token, and there can be one of each");
  for (const char letter : {'G', 'E'})
    if (ahead.find(letter) != std::string::npos && m.hybrid.layers.find(letter) == std::string::npos)
      fail(Kind::usage, "model: {model.hybrid.ahead} '", ahead, "' guesses further tokens by '", letter,
           "', and {model.hybrid.layers} has no such layer");
  for (const char* two : {"G*", "-E"})
    if (ahead.find(two[0]) != std::string::npos && ahead.find(two[1]) != std::string::npos)
      fail(Kind::usage, "model: {model.hybrid.ahead} '", ahead, "' has '", two[0], "' and '", two[1],
           "' for one further token, and there can be one of the two");
}

std::vector<int> where(const std::string& pattern, char letter) {
  std::vector<int> out;
  for (const char each : pattern) out.push_back(each == letter);
  return out;
}

bool holds(const ModelConfig& m, char letter) {
  return m.hybrid.layers.find(letter) != std::string::npos ||
         m.hybrid.ahead.find(letter) != std::string::npos;
}

bool says_otherwise(const std::vector<int>& layers, const std::string& pattern, char letter) {
  return !layers.empty() && layers != where(pattern, letter);
}

/// What other settings say of layers would be said twice.
void check_alone(const ModelConfig& m) {
  const std::string& letters = m.hybrid.layers;
  if (m.delta.attends_every != 0 || says_otherwise(m.delta.layers, letters, 'G'))
    fail(Kind::usage,
         "model: {model.hybrid.layers} says which layers remember: leave "
         "{model.delta.attends_every} out");
  const ExpertsConfig none;
  if (m.experts.every != none.every || m.experts.first != none.first ||
      says_otherwise(m.experts.layers, letters, 'E'))
    fail(Kind::usage,
         "model: {model.hybrid.layers} says which layers have experts: leave "
         "{model.experts.every} out");
  if (m.residual_after_norm)
    fail(Kind::usage,
         "model: layers of one thing each add to what came in: leave "
         "{model.residual_after_norm} or {model.hybrid.layers} out");
  if (m.experts.count == 0 && holds(m, 'E'))
    fail(Kind::usage,
         "model: {model.hybrid.layers} has layers of experts, E, and {model.experts.count} is 0: "
         "say how many there are");
  if (m.experts.count > 0 && m.hybrid.layers.find('E') == std::string::npos)
    fail(Kind::usage,
         "model: {model.hybrid.layers} has no layer of experts, E: leave {model.experts.count} "
         "out");
  if (m.delta.on && m.hybrid.layers.find('G') == std::string::npos)
    fail(Kind::usage,
         "model: {model.hybrid.layers} has no layer of the gated delta rule, G: leave "
         "{model.delta.on} out");
}

}  // namespace

void LayerParts::push_back(LayerPart part) {
  if (count_ == parts_.size()) fail(Kind::internal, "model: a layer of more parts than there are kinds");
  parts_[count_++] = part;
}

LayerParts parts_of_layer(const ModelConfig& m, int layer) {
  LayerParts parts;
  if (m.hybrid.on()) {
    const std::string_view all = m.hybrid.layers;
    for (const char letter : layer < m.layers ? all.substr(std::size_t(layer), 1) : m.hybrid.ahead)
      parts.push_back(part_of(letter));
    return parts;
  }
  const int as = std::min(layer, m.layers - 1);
  parts.push_back(m.delta.at(as) ? LayerPart::delta : LayerPart::attention);
  parts.push_back(m.experts.at(as) ? LayerPart::experts : LayerPart::mlp);
  return parts;
}

bool has_part(const ModelConfig& config, int layer, LayerPart part) {
  const LayerParts parts = parts_of_layer(config, layer);
  return std::ranges::find(parts, part) != parts.end();
}

int parts_in_all(const ModelConfig& config, LayerPart part) {
  int count = 0;
  for (int layer = 0; layer < config.layers + config.ahead.depths; ++layer)
    count += has_part(config, layer, part);
  return count;
}

ModelConfig layers_alike(const ModelConfig& config, int layer, int count) {
  ModelConfig out = config;
  out.layers = count;
  out.ahead.depths = 0;
  out.hybrid.ahead.clear();
  const auto repeat = [&](std::vector<int>& each) {
    if (!each.empty()) each.assign(std::size_t(count), int{each[std::size_t(layer)]});
  };
  repeat(out.experts.layers);
  repeat(out.delta.layers);
  repeat(out.window_layers);
  repeat(out.rotary.skip_layers);
  if (config.hybrid.on())
    out.hybrid.layers.assign(std::size_t(count), config.hybrid.layers[std::size_t(layer)]);
  return out;
}

void complete_hybrid(ModelConfig& m) {
  if (!m.hybrid.on()) {
    if (!m.hybrid.ahead.empty())
      fail(Kind::usage,
           "model: {model.hybrid.ahead} is about layers of one thing each, and "
           "{model.hybrid.layers} does not say any");
    return;
  }
  check_letters("{model.hybrid.layers}", m.hybrid.layers);
  if (std::ssize(m.hybrid.layers) != m.layers)
    fail(Kind::usage, "model: {model.hybrid.layers} has ", m.hybrid.layers.size(),
         " letters, and {model.layers} "
         "says ",
         m.layers);
  if (std::ranges::none_of(m.hybrid.layers, mixes_tokens))
    fail(Kind::usage, "model: {model.hybrid.layers} '", m.hybrid.layers,
         "' has no layer that sees other tokens: add M, G or *");
  check_ahead(m);
  check_alone(m);
  if (holds(m, 'G')) {
    m.delta.on = true;
    m.delta.layers = where(m.hybrid.layers, 'G');
  }
  if (m.experts.count > 0) m.experts.layers = where(m.hybrid.layers, 'E');
}

}  // namespace weft
