// What several architectures have in common, and the list of all.
#include "weft/exchange/gguf/family_parts.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::exchange::gguf {
namespace {

constexpr const char *window_key = "attention.sliding_window",
                     *layers_key = "attention.sliding_window_pattern";
constexpr const char *slides = "sliding_attention", *sees_all = "full_attention";
constexpr std::int64_t most_layers = 10'000;

const std::vector<Architecture>& all() {
  static const std::vector<Architecture> list = [] {
    std::vector<Architecture> out;
    for (auto some :
         {plain_architectures, architectures_with_experts, architectures_of_gemma, further_architectures})
      for (Architecture& one : some()) out.push_back(std::move(one));
    return out;
  }();
  return list;
}

}  // namespace

void write_heads(const Json& theirs, KeysToWrite& keys) {
  const auto width = theirs.at("head_dim").get<std::int64_t>();
  keys.add("attention.key_length", whole(width));
  keys.add("attention.value_length", whole(width));
  const double part = theirs.value("partial_rotary_factor", 1.0);
  keys.add("rope.dimension_count", whole(std::llround(part * double(width))));
  write_rotary(theirs, keys);
}

void read_heads(const Keys& keys, Json& theirs, Turning turning) {
  const auto heads = theirs.at("num_attention_heads").get<std::int64_t>();
  if (heads < 1) keys.refuse("attention.head_count", "expected 1 or more");
  const std::int64_t width =
      keys.whole("attention.key_length").value_or(theirs.at("hidden_size").get<std::int64_t>() / heads);
  if (width < 1) keys.refuse("attention.key_length", "expected 1 or more");
  keys.must_be("attention.value_length", width);
  if (turning == Turning::all)
    keys.must_be("rope.dimension_count", width);
  else
    theirs["partial_rotary_factor"] =
        double(keys.whole("rope.dimension_count").value_or(width)) / double(width);
  theirs["head_dim"] = width;
  read_rotary(keys, theirs);
}

void must_fill(std::string_view architecture, const Json& theirs) {
  const auto heads = theirs.at("num_attention_heads").get<std::int64_t>(),
             width = theirs.at("head_dim").get<std::int64_t>(),
             hidden = theirs.at("hidden_size").get<std::int64_t>();
  if (heads * width != hidden)
    fail(Kind::usage, "llama.cpp's ", architecture, " has heads that fill the hidden size, and ", heads,
         " heads of ", width, " channels do not fill ", hidden, "; Hugging Face's form holds the model");
}

void must_have_output(std::string_view architecture, const Json& theirs) {
  if (theirs.at("tie_word_embeddings").get<bool>())
    fail(Kind::usage, "llama.cpp's ", architecture,
         " has an output of its own, and the model's is its embedding; Hugging Face's form holds the model");
}

void write_window(const Json& theirs, KeysToWrite& keys) {
  const auto window = theirs.find("sliding_window");
  if (window == theirs.end() || window->is_null()) return;
  std::vector<std::int64_t> layers;
  for (const Json& one : theirs.at("layer_types")) layers.push_back(one == slides);
  keys.add(window_key, whole(window->get<std::int64_t>()));
  keys.add(layers_key, answers_of(std::move(layers)));
}

void read_window(const Keys& keys, Json& theirs, std::int64_t every) {
  const std::int64_t window = keys.whole(window_key).value_or(0), layers = keys.must_be_whole("block_count");
  if (layers < 1 || layers > most_layers) keys.refuse("block_count", text("expected 1 to ", most_layers));
  const auto listed = keys.list(layers_key);
  if (listed && std::ssize(*listed) < layers) keys.refuse(layers_key, text("expected ", layers, " answers"));
  if (!listed) every = keys.whole(layers_key).value_or(every);
  theirs["sliding_window"] = window > 0 ? Json(window) : Json();
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool here = listed ? (*listed)[std::size_t(i)] != 0 : every <= 0 || i % every < every - 1;
    theirs["layer_types"].push_back(window > 0 && here ? slides : sees_all);
  }
}

const Architecture& architecture_of_type(std::string_view type) {
  std::vector<std::string_view> known;
  for (const Architecture& one : all()) {
    if (std::ranges::find(one.types, type) != one.types.end()) return one;
    known.insert(known.end(), one.types.begin(), one.types.end());
  }
  fail(Kind::usage, "weft writes GGUF files of ", join(known, ", "), ", and this model is a ", type,
       "; Hugging Face's form holds it, and llama.cpp's own converter may know it");
}

const Architecture& architecture_named(const std::string& name, const std::string& who) {
  std::vector<std::string_view> known;
  for (const Architecture& one : all()) {
    if (one.name == name) return one;
    known.push_back(one.name);
  }
  fail(Kind::data, who, ": its general.architecture is ", name.substr(0, 80), ", and weft reads ",
       join(known, ", "));
}

}  // namespace weft::exchange::gguf
