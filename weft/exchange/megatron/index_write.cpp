#include "weft/exchange/megatron/index_write.h"

#include <algorithm>
#include <string_view>

#include "weft/base/format.h"
#include "weft/exchange/torch/pickle.h"

namespace weft::exchange::megatron {
namespace {

using torch::call;
using torch::fields_of;
using torch::global;
using torch::Opcodes;
using torch::pickled;
using torch::tuple_of;

constexpr std::string_view classes = "torch.distributed.checkpoint.metadata";

Opcodes size_of(const std::vector<std::int64_t>& numbers) {
  return call(global("torch", "Size"), tuple_of({tuple_of(numbers)}));
}

/// Five of them: torch of some releases back takes no more.
Opcodes properties_of(Dtype dtype) {
  const Opcodes layout = call(global("torch.serialization", "_get_layout"),
                              tuple_of({pickled(std::string_view("torch.strided"))})),
                format = call(global(classes, "_MEM_FORMAT_ENCODING"), tuple_of({pickled(std::int64_t{0})}));
  return torch::object(global(classes, "TensorProperties"),
                       tuple_of({torch::type_of(dtype), layout, pickled(false), format, pickled(false)}));
}

Opcodes box_of(const Index::Chunk& chunk) {
  return torch::object(global(classes, "ChunkStorageMetadata"),
                       fields_of({{"offsets", size_of(chunk.offsets)}, {"sizes", size_of(chunk.sizes)}}));
}

/// Of a tensor's chunk by where that is, of anything else by nothing.
Opcodes index_of(std::string_view key, const Opcodes& offset) {
  return torch::object(global(classes, "MetadataIndex"),
                       fields_of({{"fqn", pickled(key)}, {"offset", offset}, {"index", "N"}}));
}

Opcodes place_in_file(const Index::Stream& stream) {
  return torch::object(global("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
                       fields_of({{"relative_path", pickled(std::string_view(stream.file))},
                                  {"offset", pickled(stream.at)},
                                  {"length", pickled(stream.bytes)}}));
}

/// The number in a name behind a word, which it is taken out of together with its dot.
std::int64_t take_number(std::string& name, std::size_t at) {
  const std::size_t end = name.find('.', at);
  const std::int64_t number = std::stoll(name.substr(at, end - at));
  name.erase(at, end + 1 - at);
  return number;
}

}  // namespace

Place place_of(const std::string& plain_name, const ModelConfig& model) {
  constexpr std::string_view layers = "decoder.layers.", experts = ".mlp.experts.";
  Place out{.key = plain_name, .at = {}, .counts = {}};
  if (!plain_name.starts_with(layers)) return out;
  const bool alike = model.experts.count == 0 || std::ranges::count(model.experts.layers, 0) == 0;
  if (alike) {
    out.at.push_back(take_number(out.key, layers.size()));
    out.counts.push_back(model.layers);
  }
  // Without its number the layer's own dot is the word's first.
  const std::size_t found = out.key.find(alike ? experts.substr(1) : experts);
  if (found == std::string::npos) return out;
  const std::size_t behind = found + experts.size() - (alike ? 1 : 0);
  out.at.push_back(take_number(out.key, behind));
  out.counts.push_back(model.experts.count);
  out.key.insert(behind, "experts.");
  return out;
}

std::vector<std::string> extra_states_of(const Place& weight) {
  constexpr std::string_view end = ".weight", attention = "self_attention.";
  const auto numbers = [](const std::vector<std::int64_t>& all, std::int64_t none) {
    std::vector<std::string> out;
    for (const std::int64_t one : all) out.push_back(std::to_string(one));
    return out.empty() ? std::to_string(none) : join(out, ".");
  };
  if (!weight.key.ends_with(end) || weight.key.starts_with("embedding.") ||
      weight.key.ends_with("router.weight"))
    return {};
  const std::string shard = "._extra_state/shard_" + numbers(weight.at, 0) + "_" + numbers(weight.counts, 1),
                    module = weight.key.substr(0, weight.key.size() - end.size());
  std::vector<std::string> out{module + shard};
  if (module.ends_with("linear_qkv"))
    out.push_back(module.substr(0, module.find(attention) + attention.size()) + "core_attention" + shard);
  return out;
}

void Index::add(const Tensor& tensor, const Chunk& chunk) {
  Chunked& all = tensors_[tensor.key];
  all.tensor = tensor;
  all.chunks.push_back(chunk);
}

std::string Index::pickle() const {
  std::vector<std::pair<Opcodes, Opcodes>> tensors, places;
  for (const auto& [key, one] : tensors_) {
    std::vector<Opcodes> boxes;
    for (const Chunk& chunk : one.chunks) {
      boxes.push_back(box_of(chunk));
      places.emplace_back(index_of(key, size_of(chunk.offsets)), place_in_file(chunk.stream));
    }
    tensors.emplace_back(pickled(std::string_view(key)),
                         torch::object(global(classes, "TensorStorageMetadata"),
                                       fields_of({{"properties", properties_of(one.tensor.dtype)},
                                                  {"size", size_of(one.tensor.whole)},
                                                  {"chunks", torch::list_of(boxes)}})));
  }
  for (const auto& [key, stream] : objects_) {
    tensors.emplace_back(pickled(std::string_view(key)), global(classes, "BytesStorageMetadata") + ")\x81");
    places.emplace_back(index_of(key, "N"), place_in_file(stream));
  }
  return torch::pickle_of(torch::object(global(classes, "Metadata"),
                                        fields_of({{"state_dict_metadata", torch::dict_of(tensors)},
                                                   {"planner_data", "N"},
                                                   {"storage_data", torch::dict_of(places)},
                                                   {"storage_meta", "N"},
                                                   {"version", pickled(std::string_view("1.0.0"))}})));
}

}  // namespace weft::exchange::megatron
