// torch: a file for each rank of a model, whose tensors are parts of the whole ones as tensor parallelism,
// stages and expert ranks cut them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "weft/base/error.h"
#include "weft/exchange/megatron/keys.h"
#include "weft/exchange/megatron/sharded.h"

namespace weft::exchange::megatron {
namespace {

using torch::Map;
using torch::Value;

constexpr std::string_view layer_front = "decoder.layers.";

/// How tensor-parallel ranks cut a tensor.
enum class Cut : std::uint8_t { not_at_all, rows, halves_of_rows, columns };

Cut cut_of(std::string_view name, bool gated) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("layer_norm_")) return Cut::not_at_all;
  if (has("linear_fc1.")) return gated ? Cut::halves_of_rows : Cut::rows;
  if (has("word_embeddings.") || has("output_layer.") || has("linear_qkv.") || has("softmax_offset"))
    return Cut::rows;
  if (name.ends_with("linear_proj.weight") || name.ends_with("linear_fc2.weight")) return Cut::columns;
  return Cut::not_at_all;
}

struct Degrees {
  std::int64_t tp = 1, pp = 1, ep = 1;
};
struct Rank {
  std::int64_t tp = 0, pp = 0, ep = 0;
};

/// The number behind `front`, and what stands behind it.
std::pair<std::int64_t, std::string> numbered(const std::string& name, std::size_t front) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data() + front, name.data() + name.size(), number);
  if (error != std::errc() || number < 0 || number > most_layers) return {-1, name};
  return {number, std::string(end, name.data() + name.size())};
}

/// A name in a rank's file as that of the whole model.
struct Place {
  std::int64_t first_layer = 0, first_expert = 0;
};
std::string global_name(const std::string& local, const Place& place) {
  std::string name = plain_name(local);
  if (name.starts_with(layer_front)) {
    const auto [layer, behind] = numbered(name, layer_front.size());
    if (layer >= 0) name = text(layer_front, layer + place.first_layer, behind);
  }
  constexpr std::string_view experts = ".mlp.experts.";
  const std::size_t at = name.find(experts);
  if (at == std::string::npos) return name;
  const auto [expert, behind] = numbered(name, at + experts.size());
  return expert < 0 ? name : text(name.substr(0, at), experts, expert + place.first_expert, behind);
}

std::int64_t layers_in(const Map& model) {
  std::int64_t count = 0;
  for (const auto& [name, value] : model.entries)
    if (name.text() != nullptr && name.text()->starts_with(layer_front))
      count = std::max(count, numbered(*name.text(), layer_front.size()).first + 1);
  return count;
}

}  // namespace

/// Fills a checkpoint from such a directory.
class OfRanks {
 public:
  OfRanks(Checkpoint& into, const std::filesystem::path& directory) : into_(into), directory_(directory) {}

  void read() {
    open_first();
    const Arguments& args = into_.arguments();
    ways_ = {.tp = degree("tensor_model_parallel_size"),
             .pp = degree("pipeline_model_parallel_size"),
             .ep = degree("expert_model_parallel_size")};
    gated_ = args.flag("swiglu") || args.flag("geglu") || args.flag("quick_geglu");
    const std::int64_t etp = args.whole("expert_tensor_parallel_size", ways_.tp);
    if (args.whole("num_experts") > 0 && etp != ways_.tp)
      fail(Kind::data, args.who(), ": expert_tensor_parallel_size ", etp,
           " is not tensor_model_parallel_size ", ways_.tp,
           ": in files of ranks weft reads experts that are cut as other layers are");
    for (std::int64_t p = 0; p < ways_.pp; ++p)
      for (std::int64_t e = 0; e < ways_.ep; ++e)
        for (std::int64_t t = 0; t < ways_.tp; ++t) open({.tp = t, .pp = p, .ep = e});
    read_models();
    into_.model_.check_whole();
  }

 private:
  struct File {
    Rank rank;
    const torch::Archive* archive;
    std::string who;
  };

  std::int64_t degree(std::string_view name) const {
    const std::int64_t n = into_.arguments().whole(name, 1);
    if (n < 1 || n > 65536) fail(Kind::data, into_.arguments().who(), ": ", name, " is ", n);
    return n;
  }

  const torch::Archive& opened(const std::filesystem::path& file) {
    into_.files_.push_back(std::make_unique<MappedFile>(file));
    into_.archives_.push_back(std::make_unique<torch::Archive>(into_.files_.back()->bytes(), file.string()));
    if (into_.archives_.back()->value().map() == nullptr)
      fail(Kind::data, file.string(), ": holds ", into_.archives_.back()->value().kind(),
           ", expected a dict");
    return *into_.archives_.back();
  }

  static constexpr const char* file_name = "model_optim_rng.pt";

  // Whichever is the first rank's, it says how many there are.
  void open_first() {
    for (const char* name : {"mp_rank_00", "mp_rank_00_000", "mp_rank_00_000_000"}) {
      const std::filesystem::path file = directory_ / name / file_name;
      std::error_code error;
      if (!std::filesystem::exists(file, error)) continue;
      into_.take_common(opened(file), file.string());
      into_.archives_.clear();
      into_.files_.clear();
      return;
    }
    fail(Kind::data, directory_.string(), ": has no mp_rank_00*/", file_name, " of the first rank");
  }

  void open(const Rank& rank) {
    std::string name = fmt::format("mp_rank_{:02}", rank.tp);
    if (ways_.pp > 1) name += fmt::format("_{:03}", rank.pp);
    if (ways_.ep > 1) name += fmt::format("_{:03}", rank.ep);
    const std::filesystem::path file = directory_ / name / file_name;
    std::error_code error;
    if (!std::filesystem::exists(file, error))
      fail(Kind::data, directory_.string(), ": lacks ", name, '/', file_name, " of ", ways_.tp, " x ",
           ways_.pp, " x ", ways_.ep, " tensor, pipeline and expert ranks");
    files_.push_back({rank, &opened(file), file.string()});
  }

  /// The stages of a rank: one, or as many as it has virtual ones.
  static const Map* stage_of(const File& file, std::int64_t number) {
    const Map& all = *file.archive->value().map();
    const Value* one = number == 0 ? all.find("model") : nullptr;
    if (one == nullptr) one = all.find(text("model", number));
    return one == nullptr ? nullptr : one->map();
  }

  // Virtual stages follow each other rank by rank, and then again.
  void read_models() {
    std::int64_t first_layer = 0;
    for (std::int64_t stage = 0; stage_of(files_.front(), stage) != nullptr; ++stage)
      for (std::int64_t p = 0; p < ways_.pp; ++p) {
        std::int64_t layers = 0;
        for (const File& file : files_) {
          if (file.rank.pp != p) continue;
          const Map* model = stage_of(file, stage);
          if (model == nullptr) fail(Kind::data, file.who, ": has no stage ", stage, " of a model");
          if (model->find("language_model") != nullptr)
            fail(Kind::data, file.who,
                 ": is of a Megatron-LM before Megatron-Core, which weft does not read");
          layers = layers_in(*model);
          read_model(file, *model, first_layer);
        }
        first_layer += layers;
      }
    if (first_layer == 0) fail(Kind::data, files_.front().who, ": holds no layer of a GPT");
  }

  void read_model(const File& file, const Map& model, std::int64_t first_layer) {
    const std::int64_t experts = into_.arguments().whole("num_experts") / ways_.ep;
    const Place place{.first_layer = first_layer, .first_expert = file.rank.ep * experts};
    for (const auto& [key, value] : model.entries) {
      if (key.text() == nullptr || key.text()->ends_with("_extra_state")) continue;
      const std::string name = global_name(*key.text(), place);
      const torch::StoredTensor* tensor = value.tensor();
      if (tensor == nullptr) fail(Kind::data, file.who, ": ", *key.text(), " is ", value.kind());
      if (!tensor->held || !is_float(tensor->dtype))
        fail(Kind::data, file.who, ": ", *key.text(), " is of ", tensor->type,
             ", expected float32, bfloat16 or float16");
      const bool of_experts = name.find(".mlp.experts.") != std::string::npos;
      if (of_experts || file.rank.ep == 0) add(file, name, *tensor);
    }
  }

  void add(const File& file, const std::string& name, const torch::StoredTensor& tensor) {
    const std::size_t rank = tensor.size.size();
    if (rank < 1 || rank > 2 || tensor.elements() == 0 || tensor.elements() > tensor.storage_elements)
      fail(Kind::data, file.who, ": ", name, " has ", rank,
           " dimensions, expected 1 or 2 with numbers of its own");
    const Cut cut = cut_of(name, gated_);
    Chunk chunk{.rows = tensor.size[0],
                .columns = rank > 1 ? tensor.size[1] : 1,
                .archive = file.archive,
                .stored = &tensor,
                .dtype = tensor.dtype,
                .first = tensor.offset,
                .row_step = tensor.strides[0],
                .column_step = rank > 1 ? tensor.strides[1] : 1};
    Dims whole{std::span<const std::int64_t>(tensor.size)};
    if (cut == Cut::columns) whole[1] *= ways_.tp;
    if (cut == Cut::rows || cut == Cut::halves_of_rows) whole[0] *= ways_.tp;
    const std::int64_t t = file.rank.tp;
    if (cut == Cut::not_at_all && into_.model_.find(name) != nullptr)
      return must_equal(file, name, Shape(whole), chunk);
    if (cut == Cut::rows) chunk.row = t * chunk.rows;
    if (cut == Cut::columns) chunk.column = t * chunk.columns;
    if (cut != Cut::halves_of_rows) return into_.model_.add(name, Shape(whole), chunk);
    chunk.rows /= 2;
    chunk.row = t * chunk.rows;
    into_.model_.add(name, Shape(whole), chunk);
    chunk.row += ways_.tp * chunk.rows;
    chunk.first += chunk.rows * chunk.row_step;
    into_.model_.add(name, Shape(whole), chunk);
  }

  // Of what all ranks hold whole, all must hold the same.
  void must_equal(const File& file, const std::string& name, const Shape& shape, const Chunk& chunk) const {
    const TheirTensor mine{.shape = shape, .dtype = chunk.dtype, .chunks = {chunk}};
    if (!same(*into_.model_.find(name), mine))
      fail(Kind::data, file.who, ": ", name, " is not what the first rank has, and all should hold the same");
  }

  Checkpoint& into_;
  std::filesystem::path directory_;
  std::vector<File> files_;
  Degrees ways_;
  bool gated_ = false;
};

void read_ranks(Checkpoint& into, const std::filesystem::path& directory) { OfRanks(into, directory).read(); }

}  // namespace weft::exchange::megatron
