#include "weft/exchange/deepspeed/model_states.h"

#include "weft/base/error.h"
#include "weft/checkpoint/safetensors.h"

namespace weft::exchange::deepspeed {
namespace {

const std::string& name_in(const torch::Value& value, const Opened& file, std::string_view where) {
  if (value.text() == nullptr)
    fail(Kind::data, file.who, ": its ", where, " has ", value.kind(), " for a name, expected a text");
  if (!checkpoint::good_name(*value.text()))
    fail(Kind::data, file.who, ": its ", where, " has a name of ", value.text()->size(),
         " bytes that is empty, unprintable or too long");
  return *value.text();
}

void read_shapes(const Opened& file, ModelStates& out) {
  const auto* groups = file.list_or_none(file.top(), "param_shapes");
  if (groups == nullptr) return;
  std::set<std::string> names;
  for (const torch::Value& group : *groups) {
    if (group.map() == nullptr)
      fail(Kind::data, file.who, ": its param_shapes hold ", group.kind(),
           ", expected a dict for each group");
    out.groups.emplace_back();
    for (const auto& [key, sizes] : group.map()->entries) {
      const std::string& name = name_in(key, file, "param_shapes");
      if (!names.insert(name).second) fail(Kind::data, file.who, ": its param_shapes hold ", name, " twice");
      out.groups.back().push_back({name, shape_of(sizes, file.who + ": " + name)});
    }
  }
}

void must_be_all_learned(const Opened& file) {
  for (const char* key : {"frozen_param_shapes", "frozen_param_fragments"})
    if (const torch::Map* frozen = file.dict_or_none(file.top(), key);
        frozen != nullptr && !frozen->entries.empty())
      fail(Kind::data, file.who, ": its ", key, " hold ", frozen->entries.size(),
           " tensors that were not trained, and weft goes on with whole models: join what was trained with "
           "the rest (peft's merge_and_unload), save that with save_pretrained and convert it");
}

}  // namespace

ModelStates model_states(const Opened& file) {
  ModelStates out;
  const torch::Map& top = file.top();
  if (const std::int64_t ranks = file.count(top, "mp_world_size"); ranks > 1)
    fail(Kind::data, file.who, ": is of ", ranks,
         " tensor-parallel ranks, and weft reads those of one: join them with DeepSpeed's ds_to_universal "
         "and convert what that writes");
  must_be_all_learned(file);
  read_shapes(file, out);
  if (const torch::Map* shared = file.dict_or_none(top, "shared_params"))
    for (const auto& [second, first] : shared->entries)
      out.shared.emplace_back(name_in(second, file, "shared_params"), name_in(first, file, "shared_params"));
  if (const auto* buffers = file.list_or_none(top, "buffer_names"))
    for (const torch::Value& name : *buffers) out.buffers.insert(name_in(name, file, "buffer_names"));
  out.steps = file.count(top, "global_steps");
  out.samples = file.count(top, "global_samples");
  if (const torch::Map* config = file.dict_or_none(top, "ds_config")) {
    out.batch = file.count(*config, "train_batch_size");
    out.micro_batch = file.count(*config, "train_micro_batch_size_per_gpu");
    out.clip = file.number(*config, "gradient_clipping").value_or(0);
  }
  return out;
}

}  // namespace weft::exchange::deepspeed
