// ZeRO: of each group of parameters every data-parallel rank keeps a part of its numbers in a flat buffer.
// Stages 1 and 2 cut the group where ranks end; stage 3 cuts every tensor into as many parts as there are
// ranks, the last of which is filled up.
#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/exchange/deepspeed/checkpoint.h"

namespace weft::exchange::deepspeed {
namespace {

using torch::Map;
using torch::Value;

constexpr const char *of_groups = "single_partition_of_fp32_groups", *of_parts = "fp32_flat_groups",
                     *first_name = "exp_avg", *second_name = "exp_avg_sq";

/// One rank's file.
struct Rank {
  const Opened* file = nullptr;
  const Map* states = nullptr;                  // its optimizer_state_dict
  const std::vector<Value>* masters = nullptr;  // a flat buffer for each group or part of one
  std::vector<const Map*> adam;                 // and its averages; null: there are none
};

[[noreturn]] void refuse_elastic(const Opened& file) {
  fail(Kind::data, file.who,
       ": its base_optimizer_state is a list, as \"elastic_checkpoint\" writes it, which weft does not read: "
       "load it in DeepSpeed with that set to false, and save it again");
}

/// The optimizer's own states of each buffer, in their order.
std::vector<const Map*> adam_of(const Opened& file, const Map& base, std::size_t buffers) {
  std::vector<const Map*> out(buffers, nullptr);
  const Map* states = file.dict_or_none(base, "state");
  if (states == nullptr) return out;
  for (const auto& [key, value] : states->entries)
    if (key.integer() != nullptr && *key.integer() >= 0 && *key.integer() < std::ssize(out))
      out[std::size_t(*key.integer())] = value.map();
  return out;
}

Rank rank_in(const Opened& file, bool parts) {
  const Map& states = file.dict(file.top(), "optimizer_state_dict");
  Rank out{.file = &file, .states = &states};
  out.masters = file.list_or_none(states, parts ? of_parts : of_groups);
  if (out.masters == nullptr)
    fail(Kind::data, file.who, ": has neither ", of_groups, " (ZeRO-1, ZeRO-2) nor ", of_parts,
         " (ZeRO-3): weft reads no other optimizer of DeepSpeed's");
  const char* base_name = parts ? "optimizer_state_dict" : "base_optimizer_state";
  const Value* base = states.find(base_name);
  if (base != nullptr && base->list() != nullptr) refuse_elastic(file);
  if (const Map* map = file.dict_or_none(states, base_name))
    out.adam = adam_of(file, *map, out.masters->size());
  out.adam.resize(out.masters->size(), nullptr);
  return out;
}

/// How many ranks cut each group: all of them the same number.
std::int64_t partitions_of(const Rank& rank) {
  const Value* count = rank.states->find("partition_count");
  if (count == nullptr) return 0;
  if (count->integer() != nullptr) return *count->integer();
  if (count->list() == nullptr || count->list()->empty()) return 0;
  for (const Value& one : *count->list())
    if (one.integer() == nullptr || *one.integer() != *count->list()->front().integer())
      fail(
          Kind::data, rank.file->who,
          ": its groups are cut over different numbers of ranks (partition_count), which weft does not read");
  return *count->list()->front().integer();
}

class OfRanks {
 public:
  OfRanks(const Files& files, const Checkpoint::Filling& into) : into_(into), names_(files) {}

  void read() {
    const Opened& first = into_.files.emplace_back(names_.optimizer.front());
    parts_ = first.dict(first.top(), "optimizer_state_dict").find(of_parts) != nullptr;
    ranks_.push_back(rank_in(first, parts_));
    must_all_be_there();
    for (std::size_t r = 1; r < names_.optimizer.size(); ++r)
      ranks_.push_back(rank_in(into_.files.emplace_back(names_.optimizer[r]), parts_));
    must_be_unpadded();
    read_run();
    add(into_.weights, "masters", nullptr);
    if (!has_averages()) return;
    add(into_.first_moments, first_name, first_name);
    add(into_.second_moments, second_name, second_name);
  }

 private:
  void must_all_be_there() const {
    const std::int64_t count = partitions_of(ranks_.front()), there = std::ssize(names_.optimizer);
    if (count == there) return;
    const std::string where = into_.step.directory.string();
    if (count > there)
      fail(Kind::data, where, ": holds the *_optim_states.pt files of ", there,
           " data-parallel ranks out of ", count, ": copy those of the others there, too");
    fail(Kind::data, where, ": holds *_optim_states.pt files of ", there,
         " ranks, and their partition_count is ", count, ": move away what is of another run");
  }

  /// A tensor may begin at a round place, and what lies before it is then no number of the model's.
  void must_be_unpadded() const {
    const Rank& rank = ranks_.front();
    const auto* groups = rank.file->list_or_none(*rank.states, "param_alignment_paddings");
    if (groups == nullptr) return;
    for (const Value& group : *groups)
      for (const Value& one : group.list() == nullptr ? std::vector<Value>() : *group.list())
        if (one.integer() == nullptr || *one.integer() != 0)
          fail(Kind::data, rank.file->who,
               ": its param_alignment_paddings are not all 0, and weft reads tensors that follow each other "
               "without gaps: join them with DeepSpeed's ds_to_universal and convert what that writes");
  }

  void read_run() const {
    const Rank& rank = ranks_.front();
    if (const Map* base =
            rank.file->dict_or_none(*rank.states, parts_ ? "optimizer_state_dict" : "base_optimizer_state"))
      into_.groups = adam_groups(*rank.file, *base);
    for (const Map* adam : rank.adam)
      if (adam != nullptr && into_.updates == 0) into_.updates = rank.file->count(*adam, "step");
  }

  bool has_averages() const {
    return std::ranges::all_of(ranks_, [](const Rank& rank) {
      return std::ranges::all_of(rank.adam, [](const Map* adam) {
        return adam != nullptr && adam->find(first_name) != nullptr && adam->find(second_name) != nullptr;
      });
    });
  }

  /// A rank's buffer for one group: its masters, or one of the averages.
  const torch::StoredTensor& buffer(const Rank& rank, std::size_t group, const char* average) const {
    const Value* value = average == nullptr ? &(*rank.masters)[group] : rank.adam[group]->find(average);
    if (value->tensor() == nullptr)
      fail(Kind::data, rank.file->who, ": ", average == nullptr ? (parts_ ? of_parts : of_groups) : average,
           " of group ", group, " is ", value->kind(), ", expected a tensor");
    return *value->tensor();
  }

  std::string who(const char* what) const { return into_.step.directory.string() + ": " + what; }

  void must_have_groups(std::size_t groups) const {
    for (const Rank& rank : ranks_)
      if (rank.masters->size() != groups)
        fail(Kind::data, rank.file->who, ": holds ", rank.masters->size(), " groups of parameters, expected ",
             groups);
  }

  void add(Tensors& to, const char* what, const char* average) const {
    if (into_.model.groups.empty())
      fail(Kind::data, into_.files.front().who, ": has no param_shapes, by which flat buffers are read");
    return parts_ ? add_parts(to, what, average) : add_groups(to, what, average);
  }

  // Every rank's buffers follow each other, whichever group they are of.
  void add_parts(Tensors& to, const char* what, const char* average) const {
    must_have_groups(ranks_.front().masters->size());
    std::vector<Tape> tapes;
    for (const Rank& rank : ranks_) {
      Tape& tape = tapes.emplace_back(who(what));
      for (std::size_t g = 0; g < rank.masters->size(); ++g)
        tape.add(rank.file->archive, buffer(rank, g, average));
    }
    std::int64_t from = 0;
    for (const auto& group : into_.model.groups)
      for (const ModelStates::Parameter& one : group) {
        const std::int64_t all = one.shape.elements(), each = divide_up(all, std::ssize(tapes));
        std::vector<Piece> pieces;
        for (std::int64_t r = 0; r < std::ssize(tapes); ++r)
          tapes[std::size_t(r)].cut(one.name, from, std::clamp<std::int64_t>(all - r * each, 0, each),
                                    pieces);
        to.add(one.name, one.shape, tapes.front().dtype(), std::move(pieces));
        from += each;
      }
    for (const Tape& tape : tapes) must_end(tape, from, 0, what);
  }

  void add_groups(Tensors& to, const char* what, const char* average) const {
    must_have_groups(into_.model.groups.size());
    for (std::size_t g = 0; g < into_.model.groups.size(); ++g) {
      Tape tape(who(what));
      for (const Rank& rank : ranks_) tape.add(rank.file->archive, buffer(rank, g, average));
      std::int64_t from = 0;
      for (const ModelStates::Parameter& one : into_.model.groups[g]) {
        std::vector<Piece> pieces;
        tape.cut(one.name, from, one.shape.elements(), pieces);
        to.add(one.name, one.shape, tape.dtype(), std::move(pieces));
        from += one.shape.elements();
      }
      // Groups are filled up so that each rank begins at a round place.
      must_end(tape, from, 2 * std::ssize(ranks_), what);
      if (average == nullptr) must_lie_so(g, buffer(ranks_.front(), g, nullptr).elements());
    }
  }

  void must_end(const Tape& tape, std::int64_t used, std::int64_t filler, const char* what) const {
    if (tape.length() - used > std::max<std::int64_t>(filler - 1, 0))
      fail(Kind::data, who(what), " holds ", tape.length(), " numbers, and param_shapes ask for ", used);
  }

  /// Where the file says itself what of its tensors a rank has, it must be that. The last ranks' masters may
  /// be there without what fills them up.
  void must_lie_so(std::size_t group, std::int64_t each) const {
    for (std::int64_t r = 0; r < std::ssize(ranks_); ++r) {
      const Rank& rank = ranks_[std::size_t(r)];
      const auto* all = rank.file->list_or_none(*rank.states, "param_slice_mappings");
      if (all == nullptr || group >= all->size() || (*all)[group].map() == nullptr) continue;
      std::int64_t from = -r * each;
      for (const ModelStates::Parameter& one : into_.model.groups[group]) {
        const std::int64_t begin = std::max<std::int64_t>(from, 0),
                           end = std::min(from + one.shape.elements(), each);
        from += one.shape.elements();
        const Value* says = (*all)[group].map()->find(one.name);
        if (says == nullptr && begin >= end) continue;
        const Map* place = says == nullptr ? nullptr : says->map();
        if (place != nullptr && rank.file->count(*place, "start") == begin &&
            rank.file->count(*place, "numel") == end - begin)
          continue;
        fail(Kind::data, rank.file->who, ": its param_slice_mappings have ", one.name,
             " elsewhere than from ", begin, " to ", end, ", where param_shapes have it");
      }
    }
  }

  const Checkpoint::Filling& into_;
  const Files& names_;
  std::vector<Rank> ranks_;
  bool parts_ = false;
};

}  // namespace

void read_ranks(const Files& files, const Checkpoint::Filling& into) { OfRanks(files, into).read(); }

}  // namespace weft::exchange::deepspeed
