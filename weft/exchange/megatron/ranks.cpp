// torch: a file for each rank of a model, whose tensors are parts of the whole ones as tensor parallelism,
// stages and expert ranks cut them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "weft/base/error.h"
#include "weft/exchange/megatron/keys.h"
#include "weft/exchange/megatron/rank_states.h"
#include "weft/exchange/megatron/sharded.h"

namespace weft::exchange::megatron {
namespace {

using torch::Map;
using torch::Value;

/// What a stage has some of, numbered from nought on.
constexpr std::string_view layer_fronts[] = {"decoder.layers.", "encoder.layers."};

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
  for (const std::string_view front : layer_fronts) {
    if (!name.starts_with(front)) continue;
    const auto [layer, behind] = numbered(name, front.size());
    if (layer >= 0) name = text(front, layer + place.first_layer, behind);
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
    for (const std::string_view front : layer_fronts)
      if (name.text() != nullptr && name.text()->starts_with(front))
        count = std::max(count, numbered(*name.text(), front.size()).first + 1);
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
    ways_ = degrees_of(args);
    if (args.whole("num_experts") > 0 && ways_.experts_tp != ways_.tp)
      fail(Kind::data, args.who(), ": expert_tensor_parallel_size ", ways_.experts_tp,
           " is not tensor_model_parallel_size ", ways_.tp,
           ": in files of ranks weft reads experts that are cut as other layers are");
    if (args.whole("mtp_num_layers") > 0 && ways_.pp > 1)
      fail(Kind::data, args.who(), ": mtp_num_layers is in use with pipeline_model_parallel_size ", ways_.pp,
           ": in files of ranks weft reads further tokens of one stage alone; have Megatron save torch_dist");
    for (std::int64_t p = 0; p < ways_.pp; ++p)
      for (std::int64_t e = 0; e < ways_.ep; ++e)
        for (std::int64_t t = 0; t < ways_.tp; ++t) open({.tp = t, .pp = p, .ep = e});
    read_models();
    into_.model_.check_whole();
    if (family_of(into_.model_) == Family::t5) drop_second_names(into_.model_, directory_.string());
    if (!has_states(files_)) return;
    into_.settle_ = [files = files_, open = std::make_shared<OpenFiles>()](const Checkpoint& checkpoint) {
      return settle_ranks(checkpoint, files, *open);
    };
  }

 private:
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
    files_.push_back({rank, &opened(file), file.string(), {}});
  }

  /// The stages of a rank: one, or as many as it has virtual ones.
  static const Map* stage_of(const RankFile& file, std::int64_t number) {
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
        for (RankFile& file : files_) {
          if (file.rank.pp != p) continue;
          const Map* model = stage_of(file, stage);
          if (model == nullptr) fail(Kind::data, file.who, ": has no stage ", stage, " of a model");
          if (model->find("language_model") != nullptr)
            fail(Kind::data, file.who,
                 ": is of a Megatron-LM before Megatron-Core, which weft does not read");
          layers = layers_in(*model);
          file.names.push_back(read_model(file, *model, first_layer));
        }
        first_layer += layers;
      }
    if (first_layer == 0) fail(Kind::data, files_.front().who, ": holds no layer of a model");
  }

  /// What a T5 has two names for is one parameter.
  static bool is_second_name(const std::string& name, const Map& model) {
    return model.find("lm_head." + name) != nullptr || model.find("embedding." + name) != nullptr;
  }

  /// Returns the names of its tensors in the whole model.
  std::vector<std::string> read_model(const RankFile& file, const Map& model, std::int64_t first_layer) {
    const std::int64_t experts = into_.arguments().whole("num_experts") / ways_.ep;
    const Place place{.first_layer = first_layer, .first_expert = file.rank.ep * experts};
    std::vector<std::string> names;
    for (const auto& [key, value] : model.entries) {
      if (key.text() == nullptr || key.text()->ends_with("_extra_state")) continue;
      const std::string name = global_name(*key.text(), place);
      if (!is_second_name(name, model)) names.push_back(name);
      const torch::StoredTensor* tensor = value.tensor();
      if (tensor == nullptr) fail(Kind::data, file.who, ": ", *key.text(), " is ", value.kind());
      if (!tensor->held || !is_float(tensor->dtype))
        fail(Kind::data, file.who, ": ", *key.text(), " is of ", tensor->type,
             ", expected float32, bfloat16 or float16");
      if (is_of_experts(name) || file.rank.ep == 0) add(file, name, *tensor);
    }
    return names;
  }

  void add(const RankFile& file, const std::string& name, const torch::StoredTensor& tensor) {
    const std::size_t rank = tensor.size.size();
    if (rank < 1 || rank > 2 || tensor.elements() == 0 || tensor.elements() > tensor.storage_elements)
      fail(Kind::data, file.who, ": ", name, " has ", rank,
           " dimensions, expected 1 or 2 with numbers of its own");
    const Cut cut = cut_of(name, ways_);
    Dims dims{std::span<const std::int64_t>(tensor.size)};
    if (cut == Cut::columns) dims[1] *= ways_.tp;
    if (cut == Cut::rows || cut == Cut::halves_of_rows) dims[0] *= ways_.tp;
    const TheirTensor whole{.shape = Shape(dims), .dtype = tensor.dtype, .chunks = {}};
    const Portion portion = portion_of(whole, cut, ways_.tp, file.rank.tp);
    const Stored stored{*file.archive, tensor};
    if (cut == Cut::not_at_all && into_.model_.find(name) != nullptr)
      return must_equal(file, name, whole, stored);
    add_portion(into_.model_, name, whole, portion, stored);
  }

  // Of what all ranks hold whole, all must hold the same.
  void must_equal(const RankFile& file, const std::string& name, const TheirTensor& whole,
                  const Stored& stored) const {
    Tensors mine(file.who);
    add_portion(mine, name, whole, portion_of(whole, Cut::not_at_all, 1, 0), stored);
    if (!same(*into_.model_.find(name), *mine.find(name)))
      fail(Kind::data, file.who, ": ", name, " is not what the first rank has, and all should hold the same");
  }

  Checkpoint& into_;
  std::filesystem::path directory_;
  std::vector<RankFile> files_;
  Degrees ways_;
};

void read_ranks(Checkpoint& into, const std::filesystem::path& directory) { OfRanks(into, directory).read(); }

}  // namespace weft::exchange::megatron
