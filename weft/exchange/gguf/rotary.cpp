// How angles are stretched, in llama.cpp's words.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "weft/base/error.h"
#include "weft/exchange/gguf/architecture.h"

namespace weft::exchange::gguf {
namespace {

/// What a file of ours says beside rope_freqs.weight, which llama.cpp passes over.
constexpr std::string_view factor_key = "rope.scaling.llama3.factor",
                           positions_key = "rope.scaling.llama3.original_context_length",
                           low_key = "rope.scaling.llama3.low_freq_factor",
                           high_key = "rope.scaling.llama3.high_freq_factor";
/// Llama 3's own, of a file that does not say them.
constexpr std::int64_t usual_positions = 8192;
constexpr double usual_low = 1, usual_high = 4;

void write_scaling(const Json& s, KeysToWrite& keys) {
  const std::string kind = s.at("rope_type").get<std::string>();
  const auto positions = [&] { return whole(s.at("original_max_position_embeddings").get<std::int64_t>()); };
  if (kind == "llama3") {
    keys.add(factor_key, real(s.at("factor").get<double>()));
    keys.add(positions_key, positions());
    keys.add(low_key, real(s.at("low_freq_factor").get<double>()));
    keys.add(high_key, real(s.at("high_freq_factor").get<double>()));
    return;
  }
  keys.add("rope.scaling.type", text_of(kind));
  keys.add("rope.scaling.factor", real(s.at("factor").get<double>()));
  if (kind != "yarn") return;
  keys.add("rope.scaling.original_context_length", positions());
  keys.add("rope.scaling.yarn_beta_fast", real(s.at("beta_fast").get<double>()));
  keys.add("rope.scaling.yarn_beta_slow", real(s.at("beta_slow").get<double>()));
}

}  // namespace

void write_rotary(const Json& theirs, KeysToWrite& keys) {
  keys.add("rope.freq_base", real(theirs.at("rope_theta").get<double>()));
  const auto scaling = theirs.find("rope_scaling");
  if (scaling != theirs.end() && scaling->is_object() && scaling->contains("rope_type"))
    write_scaling(*scaling, keys);
}

void read_rotary(const Keys& keys, Json& theirs) {
  theirs["rope_theta"] = keys.real("rope.freq_base").value_or(10000);
  const std::string kind = keys.word("rope.scaling.type").value_or("none");
  const double factor = keys.real("rope.scaling.factor").value_or(1);
  if (kind == "none" || (kind == "linear" && factor == 1)) return;
  if (kind != "linear" && kind != "yarn") keys.refuse("rope.scaling.type", "weft reads linear and yarn");
  if (keys.real("rope.scaling.attn_factor").value_or(1) != 1)
    keys.refuse("rope.scaling.attn_factor", "weft can only compute 1");
  Json& s = theirs["rope_scaling"];
  s["rope_type"] = kind;
  s["factor"] = factor;
  if (kind == "linear") return;
  for (const char* name : {"rope.scaling.yarn_attn_factor", "rope.scaling.yarn_ext_factor"})
    if (keys.real(name).value_or(1) != 1) keys.refuse(name, "weft can only compute 1");
  if (keys.real("rope.scaling.yarn_log_multiplier").value_or(0) != 0)
    keys.refuse("rope.scaling.yarn_log_multiplier", "weft can only compute 0");
  s["original_max_position_embeddings"] =
      keys.whole("rope.scaling.original_context_length").value_or(keys.must_be_whole("context_length"));
  s["beta_fast"] = keys.real("rope.scaling.yarn_beta_fast").value_or(32);
  s["beta_slow"] = keys.real("rope.scaling.yarn_beta_slow").value_or(1);
}

// Frequencies in f32 and what follows in double, as the converter of llama.cpp has it.
std::vector<float> stretched_by(const RotaryConfig& rotary, std::int64_t channels) {
  const double longest = double(rotary.original_positions) / rotary.low,
               shortest = double(rotary.original_positions) / rotary.high;
  std::vector<float> out;
  for (std::int64_t i = 0; i < channels / 2; ++i) {
    const double frequency = float(1.0 / std::pow(rotary.base, double(2 * i) / double(channels)));
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < shortest) {
      out.push_back(1);
    } else if (wavelength > longest || rotary.low == rotary.high) {
      out.push_back(float(rotary.factor));
    } else {
      const double smooth =
          (double(rotary.original_positions) / wavelength - rotary.low) / (rotary.high - rotary.low);
      out.push_back(float(1 / ((1 - smooth) / rotary.factor + smooth)));
    }
  }
  return out;
}

std::optional<RotaryConfig> llama3_of(const Json& theirs) {
  const auto s = theirs.find("rope_scaling");
  if (s == theirs.end() || !s->is_object() || s->value("rope_type", "") != "llama3") return std::nullopt;
  RotaryConfig out;
  out.base = theirs.at("rope_theta").get<double>();
  out.factor = s->at("factor").get<double>();
  out.low = s->at("low_freq_factor").get<double>();
  out.high = s->at("high_freq_factor").get<double>();
  out.original_positions = s->at("original_max_position_embeddings").get<std::int64_t>();
  return out;
}

void read_stretched(const Keys& keys, std::span<const float> factors, Json& theirs) {
  const std::string& who = keys.contents().who;
  if (theirs.contains("rope_scaling"))
    fail(Kind::data, who, ": has ", frequencies_name, " and ", keys.key("rope.scaling.type"),
         ", and weft computes with one of them");
  const double greatest = factors.empty() ? 0 : *std::ranges::max_element(factors);
  Json& s = theirs["rope_scaling"];
  s["rope_type"] = "llama3";
  s["factor"] = keys.real(factor_key).value_or(greatest);
  s["low_freq_factor"] = keys.real(low_key).value_or(usual_low);
  s["high_freq_factor"] = keys.real(high_key).value_or(usual_high);
  s["original_max_position_embeddings"] = keys.whole(positions_key).value_or(usual_positions);
  const std::vector<float> said = stretched_by(llama3_of(theirs).value(), std::int64_t(factors.size()) * 2);
  for (std::size_t i = 0; i < said.size(); ++i)
    if (!(std::abs(said[i] - factors[i]) <= 1e-4F * said[i]))
      fail(Kind::data, who, ": ", frequencies_name, " divides frequency ", i, " by ", factors[i],
           ", and weft knows llama3's factors, by which it is ", said[i]);
}

}  // namespace weft::exchange::gguf
