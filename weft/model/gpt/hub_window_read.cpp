// Windows: how many keys a layer sees, and which layers see no more.
#include <algorithm>

#include "weft/model/gpt/hub.h"
#include "weft/model/hub_settings.h"

namespace weft {
namespace {

/// transformers writes 0 where no layer looks through one.
std::int64_t read_width(HubSettings& s, std::int64_t otherwise) {
  const HubSettings::Json* found = s.find("sliding_window");
  return found != nullptr && *found == 0 ? 0 : s.size_or("sliding_window", otherwise);
}

/// Where nothing is said of it. Of these types null is something.
std::int64_t usual_width(GptType type, const HubSettings& s) {
  if (type == GptType::gpt_oss) return 128;
  if (type == GptType::phi3 || type == GptType::mixtral || type == GptType::smollm3 ||
      type == GptType::starcoder2 || type == GptType::ministral3)
    return 0;
  const bool may_be_null = type == GptType::mistral || (slides_unasked(type) && type != GptType::gpt_oss);
  return may_be_null && s.says("sliding_window") ? 0 : 4096;
}

bool is_switched_on(GptType type, HubSettings& s) {
  return slides_everywhere(type) || slides_unasked(type) || s.yes("use_sliding_window", false);
}

/// Every n-th layer sees everything.
int usual_pattern(GptType type, HubSettings& s) {
  constexpr const char* name = "sliding_window_pattern";
  if (type == GptType::olmo3) return 4;
  if (turns_where_it_slides(type)) return int(s.size_or(name, 4, HubSettings::most_layers));
  const char* const newer = "_sliding_window_pattern";
  return int(s.size_or(s.find(newer) != nullptr ? newer : name, 6, HubSettings::most_layers));
}

/// What goes without saying where no list says it.
std::vector<int> usual_layers(const ModelConfig& m, GptType type, HubSettings& s) {
  if (turns_where_it_slides(type) || turns_by_layer(type))
    return all_but_every(usual_pattern(type, s), m.layers);
  // Qwen's first ones see everything.
  const std::int64_t full = s.size_or("max_window_layers", type == GptType::dots1 ? 62 : 28);
  std::vector<int> out;
  for (int layer = 0; layer < m.layers; ++layer)
    out.push_back(type == GptType::gpt_oss || type == GptType::gemma2 ? layer % 2 == 0
                  : type == GptType::smollm3                          ? !turns_in(m.rotary, layer)
                                                                      : layer >= full);
  return out;
}

/// Where some layers of an Exaone or a later Cohere look through a window, the others turn nothing.
std::vector<int> skips_of(const std::vector<int>& windows) {
  std::vector<int> skipped;
  for (const int window : windows) skipped.push_back(window == 0);
  return std::ranges::count(skipped, 1) > 0 ? skipped : std::vector<int>();
}

}  // namespace

std::vector<int> read_hub_listed_layers(const HubSettings::Json& types, int layers, const LayerWord& some,
                                        HubSettings& s) {
  if (!types.is_array() || std::ssize(types) != layers)
    s.refuse("layer_types", text("expected a list of ", layers, " words"));
  std::vector<int> out;
  for (const HubSettings::Json& one : types) {
    if (one != some.word && one != "full_attention") s.refuse("layer_types", some.known);
    out.push_back(one == some.word);
  }
  return out;
}

void read_hub_window(ModelConfig& m, GptType type, HubSettings& s) {
  const bool can = slides_everywhere(type) || slides_by_layer(type);
  const HubSettings::Json* types = s.find("layer_types");
  const std::int64_t width = read_width(s, usual_width(type, s));
  const std::int64_t window = is_switched_on(type, s) && can ? width : 0;
  for (const char* name : {"sliding_window_pattern", "_sliding_window_pattern"})
    if (turns_where_it_slides(type) || turns_by_layer(type)) (void)s.find(name);
  if (window == 0) {
    if (types != nullptr)
      for (const HubSettings::Json& one : *types)
        if (one != "full_attention") s.refuse("layer_types", "but no window is switched on");
  } else {
    m.window = window;
    if (types != nullptr)
      m.window_layers = read_hub_listed_layers(
          *types, m.layers, {"sliding_attention", "weft knows full_attention and sliding_attention"}, s);
    else if (!slides_everywhere(type))
      m.window_layers = usual_layers(m, type, s);
    if (turns_where_it_slides(type)) m.rotary.skip_layers = skips_of(m.window_layers);
    if (!has_window(m)) m.window = 0;
  }
  drop_idle_angles(m);
}

}  // namespace weft
