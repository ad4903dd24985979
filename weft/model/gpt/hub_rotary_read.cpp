// Positions: bases, parts of heads that turn, layers that turn nothing, and how angles are stretched.
#include <cmath>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

void read_yarn(RotaryConfig& rotary, HubSettings& s) {
  rotary.scaling = RotaryScaling::yarn;
  rotary.factor = s.positive("factor", 1);
  rotary.beta_fast = s.positive("beta_fast", 32);
  rotary.beta_slow = s.positive("beta_slow", 1);
  rotary.whole_channels = s.yes("truncate", true);
  if (s.find("mscale") != nullptr && s.find("mscale_all_dim") != nullptr) {
    rotary.mscale = s.positive("mscale", 1);
    rotary.mscale_all = s.positive("mscale_all_dim", 0);
  } else if (s.find("mscale_all_dim") != nullptr) {
    s.refuse("mscale", "expected a number beside mscale_all_dim");
  }
  const double usual = rotary.factor <= 1 ? 1 : 0.1 * std::log(rotary.factor) + 1;
  if (std::abs(s.number("attention_factor", usual) - usual) > 1e-6)
    s.refuse("attention_factor", text("weft can only compute ", usual, " with this factor"));
}

/// Of each head, the part that turns.
void read_percent(RotaryConfig& rotary, GptType type, HubSettings& s, double otherwise) {
  if (!turns_partly(type)) return s.must_be("partial_rotary_factor", 1.0);
  rotary.percent = s.positive("partial_rotary_factor", otherwise);
}

double usual_percent(GptType type) {
  if (remembers(type)) return 0.25;
  return type == GptType::glm4_moe || type == GptType::glm4 ? 0.5 : 1;
}

/// What goes without saying there.
HubSettings::Json stretched_for_gpt_oss() {
  return {{"rope_type", "yarn"}, {"factor", 32.0},    {"beta_fast", 32.0},
          {"beta_slow", 1.0},    {"truncate", false}, {"original_max_position_embeddings", 4096U}};
}

void read_llama3(RotaryConfig& rotary, HubSettings& s) {
  rotary.scaling = RotaryScaling::llama3;
  rotary.factor = s.positive("factor", 8);
  rotary.low = s.positive("low_freq_factor", 1);
  rotary.high = s.positive("high_freq_factor", 4);
  if (!(rotary.low < rotary.high)) s.refuse("high_freq_factor", "expected more than low_freq_factor");
}

/// transformers takes what is stretched in any other way for Phi-3's own way, which weft has not.
void read_scaling(RotaryConfig& rotary, GptType type, HubSettings& s) {
  const std::string kind = s.word("rope_type", s.word("type", "default"));
  const char* said = s.find("rope_type") != nullptr ? "rope_type" : "type";
  if (type == GptType::phi3 && kind != "default") s.refuse(said, "weft knows default of a phi3");
  if (kind == "linear") {
    rotary.scaling = RotaryScaling::linear;
    rotary.factor = s.positive("factor", 1);
  } else if (kind == "llama3") {
    read_llama3(rotary, s);
  } else if (kind == "yarn") {
    read_yarn(rotary, s);
  } else if (kind != "default") {
    s.refuse(said, "weft knows default, linear, llama3 and yarn");
  }
}

/// What is said of angles, in one object.
void read_object(ModelConfig& m, GptType type, const HubSettings::Json& object, const std::string& who) {
  RotaryConfig& rotary = m.rotary;
  if (!object.is_object()) fail(Kind::data, who, ": ", object.type_name(), ", expected an object");
  HubSettings s(object, who);
  rotary.base = s.positive("rope_theta", rotary.base);
  read_percent(rotary, type, s, rotary.percent);
  rotary.original_positions = s.size_or("original_max_position_embeddings", m.max_positions);
  read_scaling(rotary, type, s);
  // Of a picture's places, which a text has none of.
  for (const char* name : {"mrope_section", "mrope_interleaved"})
    if (remembers(type)) (void)s.find(name);
  if (const auto other = s.unasked(); !other.empty())
    fail(Kind::data, who, ": \"", other.front(), "\" is a setting that weft does not know");
}

/// "rope_scaling" until transformers 4, "rope_parameters" since 5; the base stands beside or inside.
void read_angles(ModelConfig& model, GptType type, HubSettings& outer) {
  RotaryConfig& rotary = model.rotary;
  rotary.base = outer.positive("rope_theta", ways_of(type).base);
  read_percent(rotary, type, outer, usual_percent(type));
  const HubSettings::Json* scaling = outer.find("rope_parameters");
  if (scaling == nullptr) scaling = outer.find("rope_scaling");
  const HubSettings::Json usual = stretched_for_gpt_oss();
  if (scaling == nullptr && type == GptType::gpt_oss) scaling = &usual;
  if (scaling == nullptr) return;
  read_object(model, type, *scaling, outer.who() + ": rope scaling");
}
/// Layers that look through a window turn by a base of their own, and only the others' angles are stretched:
/// by settings of their own until transformers 4, in an object for either since 5.
void read_angles_of_two(ModelConfig& m, GptType type, HubSettings& s) {
  m.rotary.base = s.positive("rope_theta", ways_of(type).base);
  const double near =
      type == GptType::gemma3_text ? s.positive("rope_local_base_freq", 10000) : m.rotary.base;
  RotaryConfig near_by{.base = near};
  const std::string who = s.who() + ": rope scaling";
  if (const HubSettings::Json* both = s.find("rope_parameters")) {
    if (!both->is_object()) fail(Kind::data, who, ": ", both->type_name(), ", expected an object");
    HubSettings two(*both, who);
    if (const HubSettings::Json* full = two.find("full_attention"))
      read_object(m, type, *full, who + ": full_attention");
    if (const HubSettings::Json* sliding = two.find("sliding_attention")) {
      ModelConfig other = m;
      other.rotary = near_by;
      read_object(other, type, *sliding, who + ": sliding_attention");
      near_by = other.rotary;
    }
    if (const auto other = two.unasked(); !other.empty())
      two.refuse(other.front().c_str(), "weft knows full_attention and sliding_attention");
  }
  if (const HubSettings::Json* far = s.find("rope_scaling")) read_object(m, type, *far, who);
  if (near_by.scaling != RotaryScaling::none)
    fail(Kind::data, who,
         ": sliding_attention: stretched, and weft can only stretch angles of full_attention");
  m.rotary.window_base = near_by.base;
}

/// A list says which layers turn, or how often others come; they must come at one distance.
int read_skips(int layers, HubSettings& s) {
  const auto every = int(s.size_or("no_rope_layer_interval", 4, HubSettings::most_layers));
  const HubSettings::Json* list = s.find("no_rope_layers");
  if (list == nullptr) return every <= layers ? every : 0;
  if (!list->is_array() || std::ssize(*list) < layers)
    s.refuse("no_rope_layers", text("expected a list of ", layers, " numbers"));
  RotaryConfig found;
  for (int layer = 0; layer < layers && found.skip_every == 0; ++layer)
    if ((*list)[std::size_t(layer)] == 0) found.skip_every = layer + 1;
  for (int layer = 0; layer < layers; ++layer)
    if ((*list)[std::size_t(layer)] != int(turns_in(found, layer)))
      s.refuse("no_rope_layers", "weft can only leave every n-th layer without positions");
  return found.skip_every;
}

/// Theirs has no angles for an odd number of channels.
void must_turn_in_pairs(const ModelConfig& m, const HubSettings& s) {
  const std::int64_t channels = m.channels > 0 ? m.channels : m.hidden / m.heads;
  const auto turning = std::int64_t(double(channels) * m.rotary.percent);
  if (m.rotary.percent > 1 || turning < 2 || turning % 2 != 0)
    fail(Kind::data, s.who(), ": \"partial_rotary_factor\" is ", m.rotary.percent, ", and of heads of ",
         channels, " channels weft turns an even number and no more than all");
}

}  // namespace

void read_hub_rotary(ModelConfig& m, GptType type, HubSettings& s) {
  m.positions = Positions::rotary;
  turns_by_layer(type) ? read_angles_of_two(m, type, s) : read_angles(m, type, s);
  m.rotary.interleaved = type == GptType::glm4;  // as it is stored, too
  if (type == GptType::smollm3) m.rotary.skip_every = read_skips(m.layers, s);
  if (turns_partly(type)) must_turn_in_pairs(m, s);
  if (type == GptType::phi3) (void)s.find("original_max_position_embeddings");
}

}  // namespace weft
