#include "weft/exchange/megatron/rank_states.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/exchange/megatron/flat_layout.h"
#include "weft/exchange/megatron/flat_sharded.h"
#include "weft/exchange/megatron/order.h"

namespace weft::exchange::megatron {
namespace {

using torch::Map;
using torch::Value;

constexpr const char* flat_file = "distrib_optim.pt";

std::filesystem::path flat_beside(const RankFile& file) {
  return std::filesystem::path(file.who).parent_path() / flat_file;
}

const Value* optimizer_of(const RankFile& file) { return file.archive->value().map()->find("optimizer"); }

/// One, or each of a list.
std::vector<const Value*> each_of(const Value& one) {
  if (one.list() == nullptr) return {&one};
  std::vector<const Value*> out;
  for (const Value& value : *one.list()) out.push_back(&value);
  return out;
}

/// torch's own dict of an optimizer: that, or in one that has masters beside it.
const Map* torch_state_of(const Value& optimizer) {
  const Map* map = optimizer.map();
  const Value* inner = map == nullptr ? nullptr : map->find("optimizer");
  if (inner != nullptr) map = inner->map();
  return map != nullptr && map->find("state") != nullptr && map->find("param_groups") != nullptr ? map
                                                                                                 : nullptr;
}

const Value* at_number(const Map& map, std::int64_t number) {
  for (const auto& [key, value] : map.entries)
    if (key.integer() != nullptr && *key.integer() == number) return &value;
  return nullptr;
}

/// Whether a group of parameters is the one whose weights do not decay.
bool is_without_decay(const Map& group) {
  for (const char* name : {"wd_mult", "pre_wd_mult", "weight_decay"}) {
    const Value* value = group.find(name);
    if (value != nullptr && value->real() != nullptr) return *value->real() == 0;
    if (value != nullptr && value->integer() != nullptr) return *value->integer() == 0;
  }
  return false;
}

/// Takes states by their numbers, which run through groups of parameters.
class Numbered {
 public:
  explicit Numbered(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint),
        model_(checkpoint.model()),
        where_(checkpoint.iteration().directory.string()),
        ways_(degrees_of(checkpoint.arguments())),
        out_(where_) {}

  void add(const RankFile& file) {
    const auto optimizers = each_of(*optimizer_of(file));
    for (std::size_t i = 0; i < optimizers.size() && out_.why_not.empty(); ++i) {
      const Map* torch = torch_state_of(*optimizers[i]);
      if (torch == nullptr)
        return refuse(file, "has no state and param_groups of torch's, expected them or ", flat_file);
      add_optimizer(file, {*optimizers[i]->map(), *torch}, names_of(file, i, optimizers.size()));
    }
  }

  States take() {
    if (!out_.why_not.empty()) return std::move(out_);
    for (const Tensors* part : {&out_.masters, &out_.first_moments, &out_.second_moments})
      part->check_whole();
    return out_.masters.all().empty() ? std::move(out_) : proven(std::move(out_), checkpoint_);
  }

 private:
  struct Dicts {
    const Map& whole;  // masters beside
    const Map& torch;
  };

  template <class... Parts>
  void refuse(const RankFile& file, const Parts&... parts) {
    if (out_.why_not.empty()) out_.why_not = text(file.who, ": its optimizer ", parts...);
  }

  /// Those that one of a rank's optimizers has: the last of several has the experts that ranks share.
  std::vector<std::string> names_of(const RankFile& file, std::size_t optimizer, std::size_t all) const {
    std::vector<std::string> out;
    for (const auto& names : file.names)
      for (const std::string& name : names)
        if (is_parameter(name) && (all == 1 || is_of_experts(name) == (optimizer > 0))) out.push_back(name);
    return out;
  }

  void add_optimizer(const RankFile& file, const Dicts& dicts, const std::vector<std::string>& names) {
    const auto* groups = dicts.torch.find("param_groups")->list();
    const Map* states = dicts.torch.find("state")->map();
    if (groups == nullptr || states == nullptr)
      return refuse(file, "has no list of groups and dict of states");
    const Value* masters = dicts.whole.find("fp32_from_fp16_params");
    std::size_t done = 0;
    for (std::size_t g = 0; g < groups->size(); ++g) {
      const Map* group = (*groups)[g].map();
      const Value* numbers = group == nullptr ? nullptr : group->find("params");
      if (numbers == nullptr || numbers->list() == nullptr) return refuse(file, "has a group without params");
      const std::vector<std::string> mine = names_in(names, is_without_decay(*group));
      if (numbers->list()->empty()) continue;
      if (mine.size() != numbers->list()->size())
        return refuse(file, "has a group of ", numbers->list()->size(), " parameters, expected ",
                      mine.size());
      done += mine.size();
      const auto* copies = masters == nullptr || masters->list() == nullptr || masters->list()->size() <= g
                               ? nullptr
                               : (*masters->list())[g].list();
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const std::int64_t* number = (*numbers->list())[i].integer();
        const Value* state = number == nullptr ? nullptr : at_number(*states, *number);
        if (state == nullptr || state->map() == nullptr) return refuse(file, "has no state of ", mine[i]);
        add_state(file, mine[i], {state->map()->find("exp_avg"), &out_.first_moments});
        add_state(file, mine[i], {state->map()->find("exp_avg_sq"), &out_.second_moments});
        if (masters == nullptr) continue;
        add_state(file, mine[i],
                  {copies == nullptr || copies->size() <= i ? nullptr : &(*copies)[i], &out_.masters});
      }
    }
    if (done != names.size()) refuse(file, "has ", done, " parameters, expected ", names.size());
  }

  /// Biases and all else with one dimension do not decay.
  std::vector<std::string> names_in(const std::vector<std::string>& names, bool without_decay) const {
    std::vector<std::string> out;
    for (const std::string& name : names) {
      const TheirTensor* whole = model_.find(name);
      const bool row = name.ends_with(".bias") || (whole != nullptr && whole->shape.rank() == 1);
      if (row == without_decay) out.push_back(name);
    }
    return out;
  }

  struct Given {
    const Value* value;
    Tensors* into;
  };
  // What all ranks hold whole is the first one's; the last stage's copy of the embedding is nobody's.
  void add_state(const RankFile& file, const std::string& name, const Given& given) {
    const TheirTensor* whole = model_.find(name);
    if (whole == nullptr) return;
    const bool expert = is_of_experts(name);
    const Cut cut = cut_of(name, ways_);
    const Portion portion = portion_of(*whole, cut, expert ? ways_.experts_tp : ways_.tp, file.rank.tp);
    const torch::StoredTensor* tensor = given.value == nullptr ? nullptr : given.value->tensor();
    const std::size_t rank = std::size_t(whole->shape.rank());
    const bool fits = tensor != nullptr && tensor->held && is_float(tensor->dtype) &&
                      tensor->size.size() == rank && tensor->size[0] == portion.rows &&
                      (rank == 1 || tensor->size[1] == portion.columns);
    if (!fits) return refuse(file, "keeps of ", name, " no tensor as large as that");
    if (!expert && file.rank.ep > 0) return;
    if (cut == Cut::not_at_all && file.rank.tp > 0) return;
    add_portion(*given.into, name, *whole, portion, {*file.archive, *tensor});
  }

  const Checkpoint& checkpoint_;
  const Tensors& model_;
  std::string where_;
  Degrees ways_;
  States out_;
};

/// Opens what lies beside ranks' files.
class Flat {
 public:
  Flat(const Checkpoint& checkpoint, const std::vector<RankFile>& files, OpenFiles& open)
      : checkpoint_(checkpoint), files_(files), ways_(degrees_of(checkpoint.arguments())), open_(open) {}

  States settle() {
    const std::string where = checkpoint_.iteration().directory.string();
    States out(where);
    for (const RankFile& file : files_)
      if (out.why_not.empty()) out.why_not = add(file);
    if (!out.why_not.empty()) return out;
    const FlatLayout layout(checkpoint_, optimizers_);
    out.why_not = layout.why_not();
    if (out.why_not.empty() && layout.stages() != ways_.pp * std::ssize(files_.front().names))
      out.why_not = text(where, ": its optimizer has flat buffers for ", layout.stages(),
                         " stages, expected ", ways_.pp * std::ssize(files_.front().names));
    if (!out.why_not.empty()) return out;
    const NamesOf names = [this](std::int64_t stage, std::int64_t expert_rank) {
      for (const RankFile& file : files_)
        if (file.rank.tp == 0 && file.rank.pp == stage % ways_.pp && file.rank.ep == expert_rank)
          return file.names[std::size_t(stage / ways_.pp)];
      return std::vector<std::string>();
    };
    const auto sizes = bucket_sizes(checkpoint_.arguments());
    States found = layout.states({names, false, sizes.front()});
    return found.why_not.empty() ? std::move(found) : layout.states({names, false, sizes.back()});
  }

 private:
  std::string add(const RankFile& file) {
    std::error_code error;
    const std::filesystem::path path = flat_beside(file);
    if (!std::filesystem::exists(path, error))
      return file.rank.ep > 0 ? ""
                              : text(path.string(), ": is not there, expected it beside each rank's file");
    open_.files.push_back(std::make_unique<MappedFile>(path));
    open_.archives.push_back(std::make_unique<torch::Archive>(open_.files.back()->bytes(), path.string()));
    const torch::Archive& archive = *open_.archives.back();
    const auto states = each_of(archive.value());
    optimizers_.resize(std::max(optimizers_.size(), states.size()));
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i]->is_none()) continue;
      const Rank& r = file.rank;
      const bool experts = i > 0 && i + 1 == states.size() && ways_.ep > 1;
      const std::int64_t group = r.tp + ways_.tp * (experts ? r.ep + ways_.ep * r.pp : r.pp);
      if (auto missed = add_joined(optimizers_[i][group], archive, *states[i], path.string());
          !missed.empty())
        return missed;
    }
    return "";
  }

  const Checkpoint& checkpoint_;
  const std::vector<RankFile>& files_;
  Degrees ways_;
  OpenFiles& open_;
  std::vector<FlatOptimizer> optimizers_;
};

bool are_flat(const std::vector<RankFile>& files) {
  std::error_code error;
  return std::filesystem::exists(flat_beside(files.front()), error);
}

}  // namespace

bool has_states(const std::vector<RankFile>& files) {
  if (are_flat(files)) return true;
  const Value* optimizer = optimizer_of(files.front());
  return optimizer != nullptr && !each_of(*optimizer).empty() &&
         torch_state_of(*each_of(*optimizer).front()) != nullptr;
}

States settle_ranks(const Checkpoint& checkpoint, const std::vector<RankFile>& files, OpenFiles& open) {
  if (are_flat(files)) return Flat(checkpoint, files, open).settle();
  Numbered out(checkpoint);
  for (const RankFile& file : files) {
    if (optimizer_of(file) == nullptr) {
      States none(checkpoint.iteration().directory.string());
      none.why_not = text(file.who, ": has no optimizer");
      return none;
    }
    out.add(file);
  }
  return out.take();
}

}  // namespace weft::exchange::megatron
