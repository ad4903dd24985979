#include "weft/exchange/megatron/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "weft/base/error.h"
#include "weft/base/whole.h"
#include "weft/exchange/megatron/items.h"
#include "weft/exchange/megatron/sharded.h"
#include "weft/exchange/their_weights.h"

namespace weft::exchange::megatron {
namespace {

namespace fs = std::filesystem;

constexpr const char* tracker = "latest_checkpointed_iteration.txt";
constexpr std::string_view rank_front = "mp_rank_0";

bool has(const fs::path& directory, const char* name) {
  std::error_code error;
  return fs::exists(directory / name, error);
}

bool has_ranks(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (entry.path().filename().string().starts_with(rank_front)) return true;
  return false;
}

/// The format of an iteration's directory; none where it is no such directory.
std::optional<Format> format_of(const fs::path& directory) {
  if (has(directory, ".metadata")) return Format::sharded;
  if (has_ranks(directory)) return Format::ranks;
  return std::nullopt;
}

fs::path named_by(const fs::path& root) {
  std::string word = read_file(root / tracker);
  std::erase_if(word, [](unsigned char c) { return std::isspace(c) != 0; });
  if (word == "release") return root / word;
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 0)
    fail(Kind::data, (root / tracker).string(), ": says '", word.substr(0, 40),
         "', expected an iteration or release");
  return root / fmt::format("iter_{:07}", number);
}

/// A number, or a tensor of one.
std::optional<std::int64_t> number_in(const torch::Archive& archive, const torch::Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->integer() != nullptr) return *value->integer();
  if (value->real() != nullptr) return whole_number(*value->real());
  const torch::StoredTensor* tensor = value->tensor();
  if (tensor == nullptr || tensor->elements() != 1 || !tensor->held || !is_float(tensor->dtype))
    return std::nullopt;
  float one = 0;
  widen(archive.bytes(*tensor), tensor->dtype, {0, 1, 1}, &one);
  return whole_number(one);
}

/// One for all parameters, or each has its own and the first one's is taken.
std::optional<std::int64_t> step_of_states(const torch::Archive& archive, const torch::Map& states) {
  if (const auto found = number_in(archive, states.find("common_step"))) return found;
  const torch::Map* first = states.entries.empty() ? nullptr : states.entries.front().second.map();
  return first == nullptr ? std::nullopt : number_in(archive, first->find("step"));
}

}  // namespace

std::optional<Iteration> find_iteration(const fs::path& directory) {
  if (const auto format = format_of(directory)) return Iteration{directory, *format};
  if (!has(directory, tracker)) return std::nullopt;
  const fs::path meant = named_by(directory);
  if (!has(directory, meant.filename().c_str()))
    fail(Kind::data, (directory / tracker).string(), ": names ", meant.filename().string(),
         ", which is not there");
  const auto format = format_of(meant);
  if (!format)
    fail(Kind::data, meant.string(), ": holds neither .metadata (torch_dist) nor ", rank_front,
         "* (torch): weft reads no other format of Megatron's");
  return Iteration{meant, *format};
}

std::optional<std::int64_t> updates_in(const torch::Archive& archive, const torch::Value& optimizer) {
  const auto* several = optimizer.list();
  const torch::Map* map = several != nullptr && !several->empty() ? several->front().map() : optimizer.map();
  for (int depth = 0; map != nullptr && depth < 4; ++depth) {
    const torch::Value *state = map->find("state"), *groups = map->find("param_groups");
    if (state != nullptr && state->map() != nullptr)
      if (const auto found = step_of_states(archive, *state->map())) return found;
    if (groups != nullptr && groups->list() != nullptr && !groups->list()->empty() &&
        groups->list()->front().map() != nullptr)
      return number_in(archive, groups->list()->front().map()->find("step"));
    const torch::Value* inner = map->find("optimizer");
    if (inner == nullptr && !map->entries.empty()) inner = &map->entries.front().second;
    map = inner == nullptr ? nullptr : inner->map();
  }
  return std::nullopt;
}

Checkpoint::Checkpoint(const Iteration& iteration)
    : iteration_(iteration), model_(iteration.directory.string()), states_(iteration.directory.string()) {
  iteration.format == Format::sharded ? read_sharded(*this, iteration.directory)
                                      : read_ranks(*this, iteration.directory);
  // Where the output is the embedding, the last of several stages may hold it once more.
  const TheirTensor *words = model_.find("embedding.word_embeddings.weight"),
                    *output = model_.find("output_layer.weight");
  if (words == nullptr || output == nullptr || arguments_->flag("untie_embeddings_and_output_weights"))
    return;
  if (!same(*words, *output))
    fail(Kind::data, iteration.directory.string(),
         ": its args tie output_layer.weight to the embedding, and they differ");
  model_.drop("output_layer.weight");
}

std::string Checkpoint::settle() {
  if (settle_ == nullptr) return "";
  States found = settle_(*this);
  if (!found.why_not.empty()) return std::move(found.why_not);
  states_ = std::move(found);
  return "";
}

// Newer versions have it among the objects, as a list of one.
void Checkpoint::take_common(const torch::Archive& archive, const std::string& who) {
  const torch::Value& value = archive.value();
  const auto* list = value.list();
  const torch::Map* common = list != nullptr && list->size() == 1 ? list->front().map() : value.map();
  if (common == nullptr) fail(Kind::data, who, ": holds ", value.kind(), ", expected a dict");
  const torch::Value* args = common->find("args");
  if (args == nullptr || args->map() == nullptr)
    fail(Kind::data, who, ": has no args, which say what the model is");
  arguments_.emplace(*args->map(), who);
  const Arguments given(*common, who);
  step_ = given.whole("iteration");
  if (const double version = given.real("checkpoint_version", 3); version < 2)
    fail(Kind::data, who, ": checkpoint_version ", version,
         " has rows of queries, keys and values in an order of old, which weft does not read");
  const torch::Value* optimizer = common->find("optimizer");
  updates_ = (optimizer == nullptr ? std::nullopt : updates_in(archive, *optimizer)).value_or(step_);
}

}  // namespace weft::exchange::megatron
