// Where the parts of a torch_dist checkpoint's tensors lie: its .metadata.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/model/config.h"
#include "weft/tensor/dtype.h"

namespace weft::exchange::megatron {

/// Where in a tensor of Megatron's, which may be of all layers and of all experts, one of these lies:
/// decoder.layers.3.mlp.experts.5.linear_fc1.weight is at 3, 5 of
/// decoder.layers.mlp.experts.experts.linear_fc1.weight.
struct Place {
  std::string key;
  std::vector<std::int64_t> at, counts;  // in front of its own dimensions
};
/// Layers of several kinds stand one by one.
Place place_of(const std::string& plain_name, const ModelConfig& model);
/// What Transformer Engine would keep of the modules that a weight is of, were its numbers of eight bits:
/// each is asked for, and is None. None of them where the weight has no such module of its own.
std::vector<std::string> extra_states_of(const Place& weight);

class Index {
 public:
  struct Tensor {
    std::string key;
    Dtype dtype = Dtype::f32;
    std::vector<std::int64_t> whole;
  };
  struct Stream {
    std::string file;
    std::int64_t at = 0, bytes = 0;
  };
  struct Chunk {
    std::vector<std::int64_t> offsets, sizes;
    Stream stream;
  };
  void add(const Tensor& tensor, const Chunk& chunk);
  void add_object(const std::string& key, const Stream& stream) { objects_.emplace(key, stream); }
  std::int64_t tensors() const { return std::ssize(tensors_); }
  /// As Python reads it back into torch's classes.
  std::string pickle() const;

 private:
  struct Chunked {
    Tensor tensor;
    std::vector<Chunk> chunks;
  };
  std::map<std::string, Chunked> tensors_;
  std::map<std::string, Stream> objects_;
};

}  // namespace weft::exchange::megatron
