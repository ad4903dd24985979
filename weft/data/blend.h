// Several data sets as one: which is read at which place, and how their names and weights are given.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/array.h"
#include "weft/data/dataset.h"
#include "weft/data/description.h"

namespace weft::data {

/// Prefixes, and a weight for each or none at all.
struct BlendArguments {
  std::vector<std::string> prefixes;
  std::vector<double> weights;
  bool operator==(const BlendArguments&) const = default;
};
/// A list as --data-path gives it: "30 a 70 b" or "a b c". `flag` is said in messages.
BlendArguments parse_blend(std::span<const std::string> words, const std::string& flag);
/// --data-args-path: the same list in a file.
BlendArguments read_blend_file(const std::string& path);
/// --per-split-data-args-path: train, valid and test, each a list, a text or null.
std::array<std::optional<BlendArguments>, 3> read_split_blend_file(const std::string& path);

/// The sum NumPy makes of doubles: pairwise, eight at a time.
double numpy_sum(std::span<const double> values);
std::vector<double> normalized(std::span<const double> weights);

/// Samples of one member of a blend: how many its share is, and how many are built to have some in reserve.
struct Share {
  std::int64_t target, built;
};
enum class Surplus {
  members,
  size
};  // core 0.12 and later keep the reserve in the members; up to 0.9 it was in the blend's size
std::vector<Share> shares(std::span<const double> weights, std::int64_t size,
                          Surplus surplus = Surplus::members);

struct BlendIndex {
  Array<std::int16_t> datasets;
  Array<std::int64_t> samples;
};
/// Each place goes to the data set that is furthest behind its weight.
BlendIndex blend_index(std::span<const double> weights, std::int64_t size);
/// Every sample of every data set once, evenly mixed.
BlendIndex exhaustive_index(std::span<const std::int64_t> sizes);

/// Reads and writes dataset_index.npy and dataset_sample_index.npy.
std::optional<BlendIndex> find_blend(const std::filesystem::path& folder, const BlendIdentity& identity);
void store_blend(const std::filesystem::path& folder, const BlendIdentity& identity, const BlendIndex& index);

class Blend : public Dataset {
 public:
  Blend(std::vector<std::shared_ptr<const Dataset>> members, BlendIndex index);
  std::int64_t size() const override { return static_cast<std::int64_t>(index_.datasets.size()); }
  void fill(std::int64_t i, Sample& into) const override;
  std::vector<Origin> origins(std::int64_t i) const override;
  const BlendIndex& index() const { return index_; }

 private:
  struct MemberSample {
    const Dataset& member;
    std::int64_t sample;
  };
  MemberSample at(std::int64_t i) const;

  std::vector<std::shared_ptr<const Dataset>> members_;
  BlendIndex index_;
};

}  // namespace weft::data
