// DeepSpeed's files by hand: what a test changes of a step that is otherwise in order.
#pragma once

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tests/exchange/torch_files.h"
#include "weft/base/file.h"
#include "weft/exchange/deepspeed/checkpoint.h"
#include "weft/exchange/their_weights.h"

namespace weft::testing {

/// Keys and the opcodes of their values; of changes, no opcodes: the key goes.
using Said = std::vector<std::pair<std::string, std::string>>;

inline const std::string none = "N";

inline std::string dict(const Said& all) {
  std::string out = "}(";
  for (const auto& [key, value] : all) out += word(key) + value;
  return out + "u";
}
inline std::string list(const std::vector<std::string>& items) {
  std::string out = "](";
  for (const std::string& item : items) out += item;
  return out + "e";
}
inline std::string sizes(std::initializer_list<std::int32_t> all) {
  std::string items;
  for (const std::int32_t n : all) items += number(n);
  return name("torch", "Size") + tuple(tuple(items)) + "R";
}
inline Said changed(Said all, const Said& by) {
  for (const auto& [key, value] : by) {
    std::erase_if(all, [&name = key](const auto& one) { return one.first == name; });
    if (!value.empty()) all.emplace_back(key, value);
  }
  return all;
}

/// Tensors of one file, which its opcodes ask for.
class Storages {
 public:
  std::string flat(const std::vector<float>& values) {
    std::string bytes;
    for (const float value : values) bytes += little(value);
    bytes_.push_back(bytes);
    const auto count = static_cast<std::int32_t>(values.size());
    return tensor(storage(std::to_string(bytes_.size() - 1), count), 0, number(count), number(1));
  }
  /// The key of a storage of these bytes.
  std::string raw(const std::string& bytes) {
    bytes_.push_back(bytes);
    return std::to_string(bytes_.size() - 1);
  }
  const std::vector<std::string>& all() const { return bytes_; }

 private:
  std::vector<std::string> bytes_;
};

inline void write_saved(const std::filesystem::path& path, const std::string& opcodes,
                        const Storages& storages = {}) {
  std::filesystem::create_directories(path.parent_path());
  write_atomically(path, std::string_view(saved(opcodes, storages.all())));
}

/// A step of stage 1 or 3: w [5] and k [3] are one group, b [2] is another.
struct MadeStep {
  std::filesystem::path directory;
  int ranks = 3;
  bool parts = false;     // stage 3
  bool stripped = false;  // masters without what fills them up, as stage 1 has them of its last rank

  std::filesystem::path model() const {
    return directory / (parts ? "zero_pp_rank_0_mp_rank_00_model_states.pt" : "mp_rank_00_model_states.pt");
  }
  std::filesystem::path optimizer(int rank) const {
    return directory / ("zero_pp_rank_" + std::to_string(rank) + "_mp_rank_00_optim_states.pt");
  }

  void write(const Said& of_model = {}, const Said& of_first = {}) const {
    write_model(of_model);
    for (int r = 0; r < ranks; ++r) write_rank(r, r == 0 ? of_first : Said());
  }

  void write_model(const Said& changes = {}) const {
    Storages storages;
    const Said module{{"w", storages.flat({0, 1, 2, 3, 4})},
                      {"k", storages.flat({5, 6, 7})},
                      {"b", storages.flat({8, 9})},
                      {"seen", storages.flat({77})}};
    const Said all{
        {"module", dict(module)},
        {"param_shapes", list({dict({{"w", sizes({5})}, {"k", sizes({3})}}), dict({{"b", sizes({2})}})})},
        {"buffer_names", list({word("seen")})},
        {"shared_params", dict({{"twice", word("k")}})},
        {"frozen_param_shapes", none},
        {"global_steps", number(12)},
        {"global_samples", number(96)},
        {"mp_world_size", number(1)},
        {"ds_config", dict({{"train_batch_size", number(8)}, {"gradient_clipping", number(2)}})}};
    write_saved(model(), dict(changed(all, changes)), storages);
  }

  /// Every element is its place in the model, plus `more`; what fills buffers up is -1.
  std::vector<float> buffer(int rank, int group, float more) const {
    const std::vector<std::pair<int, int>> tensors = group == 0
                                                         ? std::vector<std::pair<int, int>>{{0, 5}, {5, 3}}
                                                         : std::vector<std::pair<int, int>>{{8, 2}};
    std::vector<float> out;
    if (parts) {
      for (const auto& [first, count] : tensors) {
        const int each = (count + ranks - 1) / ranks;
        for (int i = rank * each; i < (rank + 1) * each; ++i)
          out.push_back(i < count ? float(first + i) + more : -1);
      }
      return out;
    }
    const int first = tensors.front().first, end = tensors.back().first + tensors.back().second;
    const int each = (end - first + ranks - 1) / ranks;
    for (int i = first + rank * each; i < first + (rank + 1) * each; ++i)
      out.push_back(i < end ? float(i) + more : -1);
    return out;
  }

  void write_rank(int rank, const Said& changes = {}) const {
    Storages storages;
    std::string states = "}(", masters = "](";
    for (int g = 0; g < 2; ++g) {
      std::vector<float> of_group = buffer(rank, g, 0);
      if (stripped) std::erase(of_group, -1.0F);
      masters += storages.flat(of_group);
      states += number(g) + dict({{"step", number(11)},
                                  {"exp_avg", storages.flat(buffer(rank, g, 100))},
                                  {"exp_avg_sq", storages.flat(buffer(rank, g, 200))}});
    }
    const std::string adam =
        dict({{"state", states + "u"}, {"param_groups", list({dict({{"lr", "G" + big(0.5)}})})}});
    const Said all{{parts ? "fp32_flat_groups" : "single_partition_of_fp32_groups", masters + "e"},
                   {parts ? "optimizer_state_dict" : "base_optimizer_state", adam},
                   {"partition_count", parts ? number(ranks) : list({number(ranks), number(ranks)})}};
    write_saved(optimizer(rank), dict({{"optimizer_state_dict", dict(changed(all, changes))}}), storages);
  }

 private:
  static std::string big(double value) {
    std::string out = little(value);
    std::ranges::reverse(out);
    return out;
  }
};

inline std::vector<float> numbers(const exchange::HubSource& from, const std::string& name) {
  std::vector<float> out(static_cast<std::size_t>(from.find(name)->shape.elements()));
  from.read(name, {0, 1, std::ssize(out)}, out.data());
  return out;
}

}  // namespace weft::testing
