// config.json and model.safetensors.index.json from anyone: read or refused with Kind::data; what is read can
// be taken apart into recipes and, where a family has it all, written and read again as the same model.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "weft/base/error.h"
#include "weft/exchange/hub_config.h"
#include "weft/exchange/hub_tensors.h"
#include "weft/exchange/recipe.h"

namespace {

using namespace weft::exchange;

void read_config(std::string_view json) {
  const HubConfig config = hub_config_from_json(json, "fuzz");
  // Recipes of a large model are many; only small ones are taken apart.
  if (config.model.layers > 4 || config.model.heads > 64 || config.model.channels > 1024) return;
  if (recipes(config.type, config.model).empty()) std::abort();
  std::string again;
  try {
    again = hub_config_json(config.model, config.dtype, {});
  } catch (const weft::Error& error) {
    if (error.kind() == weft::Kind::usage)
      return;  // an activation or a window that no family is written with
    throw;
  }
  const weft::ModelConfig read = hub_config_from_json(again, "again").model;
  weft::ModelConfig model = config.model;
  model.norm_centered_gain = read.norm_centered_gain;  // recipes bring gains from one form to the other
  must_agree(model, read, "fuzz");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    if (input.find("weight_map") != std::string_view::npos)
      (void)hub_index_from_json(input, "fuzz");
    else
      read_config(input);
  } catch (const weft::Error& error) {
    if (error.kind() != weft::Kind::data) std::abort();
  }
  return 0;
}
