// A universal checkpoint: a folder for each tensor, with a file for its master and each of its averages.
#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/exchange/deepspeed/checkpoint.h"

namespace weft::exchange::deepspeed {
namespace {

namespace fs = std::filesystem;

/// The tensors' folders; what else lies there is none.
std::vector<fs::path> folders_in(const fs::path& all) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(all, error)) {
    if (!entry.is_directory()) continue;
    if (!checkpoint::good_name(entry.path().filename().string()))
      fail(Kind::data, all.string(), ": holds a folder whose name of ",
           entry.path().filename().string().size(), " bytes is unprintable or too long");
    out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

class Universal {
 public:
  explicit Universal(const Checkpoint::Filling& into) : into_(into) {
    for (const auto& group : into.model.groups)
      for (const ModelStates::Parameter& one : group) shapes_[one.name] = &one.shape;
  }

  void read() {
    const fs::path all = into_.step.directory / "zero";
    for (const fs::path& folder : folders_in(all)) {
      if (is_second(folder.filename().string())) continue;
      add(folder, "fp32.pt", into_.weights);
      add(folder, "exp_avg.pt", into_.first_moments);
      add(folder, "exp_avg_sq.pt", into_.second_moments);
    }
    for (const auto& [name, shape] : shapes_)
      if (into_.weights.find(name) == nullptr) fail(Kind::data, all.string(), ": lacks ", name, "/fp32.pt");
    read_run(all);
  }

 private:
  /// What is there for a second name was rounded to the type that was multiplied.
  bool is_second(const std::string& name) const {
    return std::ranges::any_of(into_.model.shared, [&](const auto& one) {
      return one.first == name && shapes_.contains(one.second);
    });
  }

  /// ZeRO-3's are a tensor and flat; others are a dict, with what is known of the cut beside the whole
  /// tensor.
  void add(const fs::path& folder, const char* file_name, Tensors& to) {
    std::error_code error;
    if (!fs::is_regular_file(folder / file_name, error)) return;
    const Opened& file = into_.files.emplace_back(folder / file_name);
    const torch::Map* dict = file.archive.value().map();
    const torch::Value* value = dict == nullptr ? &file.archive.value() : dict->find("param");
    if (value == nullptr || value->tensor() == nullptr) fail(Kind::data, file.who, ": holds no tensor param");
    const std::string name = folder.filename().string();
    const auto known = shapes_.find(name);
    Tape tape(file.who);
    tape.add(file.archive, *value->tensor());
    const Shape stored = shape_of(*value->tensor(), file.who + ": " + name);
    const bool flat = known != shapes_.end() && known->second->elements() == stored.elements();
    std::vector<Piece> pieces;
    tape.cut(name, 0, stored.elements(), pieces);
    to.add(name, flat ? *known->second : stored, tape.dtype(), std::move(pieces));
  }

  // What was cut by ZeRO-3 has both in the states of one of its ranks.
  void read_run(const fs::path& all) const {
    const Opened file(all / "optimizer_state.pt");
    const torch::Map* inner = file.dict_or_none(file.top(), "optimizer_state_dict");
    into_.groups = adam_groups(file, inner == nullptr ? file.top() : *inner);
    const torch::Map* states = inner == nullptr ? nullptr : file.dict_or_none(*inner, "state");
    if (states != nullptr && !states->entries.empty() && states->entries.front().second.map() != nullptr)
      into_.updates = file.count(*states->entries.front().second.map(), "step");
    for (const fs::path& folder : folders_in(all)) {
      std::error_code error;
      if (into_.updates > 0 || !fs::is_regular_file(folder / "step.pt", error)) continue;
      const Opened step(folder / "step.pt");
      into_.updates = step.count(step.archive.value());
    }
  }

  const Checkpoint::Filling& into_;
  std::map<std::string, const Shape*> shapes_;
};

}  // namespace

void read_universal(const Checkpoint::Filling& into) { Universal(into).read(); }

}  // namespace weft::exchange::deepspeed
