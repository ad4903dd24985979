#include "weft/exchange/deepspeed/find.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <string>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/checkpoint/safetensors.h"

namespace weft::exchange::deepspeed {
namespace {

namespace fs = std::filesystem;

constexpr const char *trackers[] = {"latest", "latest_universal"}, *config_name = "config.json",
                     *tensors_folder = "zero", *offloaded_folder = "offloaded_tensors";
constexpr std::string_view model_end = "_model_states.pt", layer_end = "-model_states.pt",
                           optimizer_end = "_optim_states.pt";
constexpr std::int64_t most_ranks = 65536;

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error))
    out.push_back(entry.path().filename().string());
  std::ranges::sort(out);
  return out;
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::optional<Step> step_at(const fs::path& directory) {
  std::error_code error;
  if (is_file(directory / tensors_folder / "optimizer_state.pt")) return Step{directory, true};
  for (const std::string& name : names_in(directory))
    if (name.ends_with(model_end) || name.ends_with(optimizer_end)) return Step{directory, false};
  return std::nullopt;
}

/// The step that a root's file names; empty where it names none.
fs::path named_by(const fs::path& root, const char* tracker) {
  std::string word = read_file(root / tracker);
  while (!word.empty() && std::isspace(static_cast<unsigned char>(word.back())) != 0) word.pop_back();
  if (!checkpoint::good_name(word) || word == "." || word == ".." ||
      word.find_first_of("/\\") != std::string::npos)
    fail(Kind::data, (root / tracker).string(), ": says ", word.size(),
         " bytes that are no directory's name, expected one as global_step500");
  return root / word;
}

/// A number between two words of a name; none where it is not made so.
std::optional<std::int64_t> number_after(std::string_view& name, std::string_view front) {
  if (!name.starts_with(front)) return std::nullopt;
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data() + front.size(), name.data() + name.size(), number);
  if (error != std::errc() || number < 0 || number >= most_ranks) return std::nullopt;
  name.remove_prefix(std::size_t(end - name.data()));
  return number;
}

/// [bf16_][zero_pp_rank_D_]mp_rank_M, and what a file of that name holds.
struct Owner {
  std::int64_t data = 0, model = 0;
  bool of_optimizer = false;
};
std::optional<Owner> owner_of(std::string_view name) {
  constexpr std::string_view kind = "bf16_";
  if (name.starts_with(kind)) name.remove_prefix(kind.size());
  Owner out;
  if (const auto data = number_after(name, "zero_pp_rank_")) {
    out.data = *data;
    if (!name.starts_with('_')) return std::nullopt;
    name.remove_prefix(1);
  }
  const auto model = number_after(name, "mp_rank_");
  if (!model || (name != model_end && name != optimizer_end)) return std::nullopt;
  out.model = *model;
  out.of_optimizer = name == optimizer_end;
  return out;
}

/// What makes a step one that weft does not read, by the name of a file of it.
void must_be_of_whole_layers(const fs::path& directory, const std::string& name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (name.starts_with("expp_rank_") || (has("expert_") && name.ends_with(model_end)))
    fail(Kind::data, directory.string(), ": ", name,
         " is of experts that ranks share out, which weft does not read: save the model with "
         "transformers' save_pretrained and convert that");
  if (name.starts_with("layer_") && name.ends_with(layer_end))
    fail(Kind::data, directory.string(), ": ", name,
         " is a layer of a PipelineModule, which weft does not read: save the model with transformers' "
         "save_pretrained and convert that");
  if (name == offloaded_folder)
    fail(Kind::data, directory.string(), ": ", name,
         " holds what was offloaded to nvme, in a form that weft does not read: load it in DeepSpeed with "
         "\"offload_optimizer\" to the cpu, and save it again");
}

void must_be_of_one(const fs::path& directory, const std::string& name, const Owner& owner) {
  if (owner.model == 0) return;
  fail(Kind::data, directory.string(), ": ", name,
       " is of a second tensor-parallel rank, and weft reads those of one: join them with DeepSpeed's "
       "ds_to_universal and convert what that writes");
}

}  // namespace

std::optional<Step> find_step(const fs::path& directory) {
  if (const auto step = step_at(directory)) return step;
  for (const char* tracker : trackers) {
    if (!is_file(directory / tracker)) continue;
    const fs::path meant = named_by(directory, tracker);
    if (const auto step = step_at(meant)) return step;
    std::error_code error;
    // Whoever trained keeps the model's own files, and may have done away with the rest.
    if (is_file(directory / config_name) && !fs::exists(meant, error)) continue;
    fail(Kind::data, (directory / tracker).string(), ": names ", meant.filename().string(),
         fs::exists(meant, error) ? ", which holds no file of DeepSpeed's" : ", which is not there");
  }
  for (const std::string& name : names_in(directory))
    if (name.starts_with("global_step") && step_at(directory / name) && !is_file(directory / config_name))
      fail(Kind::data, directory.string(), ": holds ", name,
           " and no file latest, which says what step is meant: name the step's own directory");
  return std::nullopt;
}

Files files_of(const Step& step) {
  const std::string where = step.directory.string();
  Files out;
  std::map<std::int64_t, std::string> ranks;
  for (const std::string& name : names_in(step.directory)) {
    if (!step.universal) must_be_of_whole_layers(step.directory, name);
    const auto owner = owner_of(name);
    if (!owner) continue;
    if (!step.universal) must_be_of_one(step.directory, name, *owner);
    if (owner->of_optimizer) {
      if (const auto [at, fresh] = ranks.try_emplace(owner->data, name); !fresh)
        fail(Kind::data, where, ": ", at->second, " and ", name, " are both of rank ", owner->data,
             ": move away what is of another run");
    } else if (owner->data == 0 && owner->model == 0) {
      out.model = step.directory / name;
    }
  }
  if (out.model.empty())
    fail(Kind::data, where, ": lacks mp_rank_00", model_end, " or zero_pp_rank_0_mp_rank_00", model_end,
         ", which say what tensors there are");
  for (const auto& [rank, name] : ranks) {
    if (rank != std::ssize(out.optimizer))
      fail(Kind::data, where, ": holds ", name, " and lacks that of rank ", out.optimizer.size());
    out.optimizer.push_back(step.directory / name);
  }
  return out;
}

fs::path find_config(const fs::path& directory, const Step& step, const fs::path& given) {
  std::error_code error;
  if (!given.empty()) {
    const fs::path file = fs::is_directory(given, error) ? given / config_name : given;
    if (!is_file(file)) fail(Kind::usage, given.string(), ": is no config.json and holds none");
    return file;
  }
  const fs::path root = fs::absolute(step.directory).lexically_normal();
  for (const fs::path& place :
       {directory, step.directory, root.parent_path(), root.parent_path().parent_path()})
    if (is_file(place / config_name)) return place / config_name;
  fail(Kind::data, directory.string(),
       ": has no config.json in it or above it, which says what the model is: copy that of its Hugging Face "
       "model there, or let weft checkpoint convert read it elsewhere (its option config)");
}

}  // namespace weft::exchange::deepspeed
