// Positions: bases, parts of heads that turn, layers that turn nothing, and how angles are stretched.
#include <algorithm>
#include <cmath>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"
#include "weft/model/rotary.h"

namespace weft {
namespace {

/// What scores grow by, as one of our two numbers that say so; rounded, so that what is written is read
/// again.
void grow_by(RotaryConfig& rotary, double growth) {
  const auto times = [&](double by) {
    return std::round((by - 1) / (0.1 * std::log(rotary.factor)) * 1e9) / 1e9;
  };
  rotary.mscale = growth >= 1 ? times(growth) : 0;
  rotary.mscale_all = growth >= 1 ? 0 : times(1 / growth);
}

/// Where nothing else is said, transformers has 0.1 log(factor) + 1; one of two numbers alone says nothing to
/// it, but to latent attention.
void read_growth(RotaryConfig& rotary, bool latent, HubSettings& s) {
  const double one = s.number("mscale", 0), all = s.number("mscale_all_dim", 0);
  if (one != 0 && all != 0) {
    rotary.mscale = s.positive("mscale", 1);
    rotary.mscale_all = s.positive("mscale_all_dim", 0);
  } else if (all != 0 && latent) {
    s.refuse("mscale", "expected a number beside mscale_all_dim");
  }
  const double usual = growth_of_scores(rotary), growth = s.number("attention_factor", usual);
  if (std::abs(growth - usual) <= 1e-6) return;
  if (latent || rotary.factor <= 1 || !(growth > 0))
    s.refuse("attention_factor", text("weft can only compute ", usual, " with this factor"));
  grow_by(rotary, growth);
}

void read_yarn(RotaryConfig& rotary, bool latent, HubSettings& s) {
  rotary.scaling = RotaryScaling::yarn;
  rotary.factor = s.positive("factor", 1);
  rotary.beta_fast = s.positive("beta_fast", 32);
  rotary.beta_slow = s.positive("beta_slow", 1);
  rotary.whole_channels = s.yes("truncate", true);
  read_growth(rotary, latent, s);
}

/// Of each head, the part that turns.
void read_percent(RotaryConfig& rotary, GptType type, HubSettings& s, double otherwise) {
  if (!turns_partly(type)) return s.must_be("partial_rotary_factor", 1.0);
  rotary.percent = s.positive(
      type == GptType::gpt_neox && s.says("rotary_pct") ? "rotary_pct" : "partial_rotary_factor", otherwise);
}

double usual_percent(GptType type) {
  if (remembers(type) || type == GptType::gpt_neox || type == GptType::stablelm) return 0.25;
  const bool half = type == GptType::glm4_moe || type == GptType::glm4 || type == GptType::glm ||
                    type == GptType::phi || type == GptType::nemotron || type == GptType::bamba;
  return half ? 0.5 : 1;
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
  if (rotary.low > rotary.high) s.refuse("high_freq_factor", "expected low_freq_factor or more");
}

std::vector<double> read_factors(const char* name, HubSettings& s) {
  const HubSettings::Json* list = s.find(name);
  constexpr std::string_view expected = "expected a list of numbers above 0";
  if (list == nullptr || !list->is_array()) s.refuse(name, expected);
  std::vector<double> out;
  for (const HubSettings::Json& one : *list) {
    if (!one.is_number() || !(one.get<double>() > 0)) s.refuse(name, expected);
    out.push_back(one.get<double>());
  }
  return out;
}

/// What scores grow by says the factor where it is said at all; else lengths do.
void read_longrope(ModelConfig& m, HubSettings& s) {
  RotaryConfig& r = m.rotary;
  r.scaling = RotaryScaling::longrope;
  r.short_factors = read_factors("short_factor", s);
  r.long_factors = read_factors("long_factor", s);
  r.factor = s.positive("factor", double(m.max_positions) / double(r.original_positions));
  const double grown = s.positive("attention_factor", growth_of_scores(r));
  if (std::abs(grown - growth_of_scores(r)) > 1e-9)
    r.factor = std::exp((grown * grown - 1) * std::log(double(r.original_positions)));
}

/// transformers takes what is stretched in other ways for Phi-3's own, under its older names.
void read_scaling_of_phi3(ModelConfig& m, const std::string& kind, const char* said, HubSettings& s) {
  if (kind == "longrope" || kind == "su" || kind == "yarn") return read_longrope(m, s);
  if (kind != "default") s.refuse(said, "weft knows default and longrope of a phi3");
}

void read_scaling(ModelConfig& m, GptType type, HubSettings& s) {
  RotaryConfig& rotary = m.rotary;
  const std::string kind = s.word("rope_type", s.word("type", "default"));
  const char* said = s.find("rope_type") != nullptr ? "rope_type" : "type";
  if (type == GptType::phi3) return read_scaling_of_phi3(m, kind, said, s);
  if (kind == "linear") {
    rotary.scaling = RotaryScaling::linear;
    rotary.factor = s.positive("factor", 1);
  } else if (kind == "llama3") {
    read_llama3(rotary, s);
  } else if (kind == "yarn") {
    read_yarn(rotary, is_deepseek(type), s);
  } else if (is_hunyuan(type) && kind == "dynamic" && s.find("alpha") != nullptr) {
    stretch_base(rotary, m.channels > 0 ? m.channels : m.hidden / m.heads, s);
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
  rotary.original_positions = s.size_or("original_max_position_embeddings", rotary.original_positions);
  read_scaling(m, type, s);
  if (type == GptType::ministral3) read_ministral3(m, s);
  // Of a picture's places, which a text has none of.
  for (const char* name : {"mrope_section", "mrope_interleaved"})
    if (remembers(type)) (void)s.find(name);
  if (const auto other = s.unasked(); !other.empty())
    fail(Kind::data, who, ": \"", other.front(), "\" is a setting that weft does not know");
}

/// MiniMax-M2 is published with a number of channels.
void read_turned_channels(ModelConfig& m, HubSettings& s) {
  if (s.says("partial_rotary_factor") || s.find("rotary_dim") == nullptr) return;
  m.rotary.percent = percent_that_turns(s.size("rotary_dim", HubSettings::widest), m.channels);
}

/// "rope_scaling" until transformers 4, "rope_parameters" since 5; the base stands beside or inside.
void read_angles(ModelConfig& model, GptType type, HubSettings& outer) {
  RotaryConfig& rotary = model.rotary;
  rotary.base =
      outer.positive(type == GptType::gpt_neox ? "rotary_emb_base" : "rope_theta", ways_of(type).base);
  read_percent(rotary, type, outer, usual_percent(type));
  const HubSettings::Json* scaling = outer.find("rope_parameters");
  if (scaling == nullptr) scaling = outer.find("rope_scaling");
  const HubSettings::Json usual =
      type == GptType::ministral3 ? usual_angles_of_ministral3() : stretched_for_gpt_oss();
  if (scaling == nullptr && (type == GptType::gpt_oss || type == GptType::ministral3)) scaling = &usual;
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

/// A list says which layers turn, or how often others come; here, which turn nothing.
std::vector<int> read_skips(int layers, HubSettings& s) {
  const std::int64_t every = s.size_or("no_rope_layer_interval", 4, HubSettings::most_layers);
  const HubSettings::Json* list = s.find("no_rope_layers");
  std::vector<int> skipped;
  if (list != nullptr && !list->is_array())
    s.refuse("no_rope_layers", text("expected a list of ", layers, " numbers"));
  const bool listed = list != nullptr && !list->empty();
  if (listed && std::ssize(*list) < layers)
    s.refuse("no_rope_layers", text("expected a list of ", layers, " numbers"));
  for (int layer = 0; layer < layers; ++layer) {
    const HubSettings::Json here =
        listed ? (*list)[std::size_t(layer)] : HubSettings::Json(int((layer + 1) % every != 0));
    if (here != 0 && here != 1) s.refuse("no_rope_layers", "expected a list of 0 and 1");
    skipped.push_back(here == 0);
  }
  return std::ranges::count(skipped, 1) > 0 ? skipped : std::vector<int>();
}

/// Theirs has no angles for an odd number of channels.
void must_turn_in_pairs(const ModelConfig& m, const HubSettings& s) {
  const std::int64_t channels = m.channels > 0 ? m.channels : m.hidden / m.heads;
  // What is more than all is not counted: it may be more than any count holds.
  const bool within = m.rotary.percent <= 1;
  const auto turning = within ? std::int64_t(double(channels) * m.rotary.percent) : 0;
  if (turning < 2 || turning % 2 != 0)
    fail(Kind::data, s.who(), ": \"partial_rotary_factor\" is ", m.rotary.percent, ", and of heads of ",
         channels, " channels weft turns an even number and no more than all");
}

}  // namespace

void read_hub_rotary(ModelConfig& m, GptType type, HubSettings& s) {
  m.positions = Positions::rotary;
  m.rotary.original_positions = m.max_positions;
  if (type == GptType::phi3)
    m.rotary.original_positions = s.size_or("original_max_position_embeddings", m.max_positions);
  turns_by_layer(type) ? read_angles_of_two(m, type, s) : read_angles(m, type, s);
  // What is then written is a Llama.
  m.rotary.interleaved = stores_neighbors(type) && type != GptType::ernie4_5;
  if (type == GptType::smollm3 || type == GptType::llama4_text)
    m.rotary.skip_layers = read_skips(m.layers, s);
  if (type == GptType::minimax_m2) read_turned_channels(m, s);
  if (turns_partly(type)) must_turn_in_pairs(m, s);
}

}  // namespace weft
