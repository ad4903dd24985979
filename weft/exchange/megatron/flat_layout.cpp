#include "weft/exchange/megatron/flat_layout.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "weft/base/error.h"
#include "weft/exchange/megatron/order.h"

namespace weft::exchange::megatron {
namespace {

constexpr const char *words = "embedding.word_embeddings.weight", *output = "output_layer.weight";

std::vector<const FlatBuffer*> buffers_in(const std::map<std::int64_t, FlatBuffer>& group) {
  std::vector<const FlatBuffer*> out;
  for (const auto& [number, buffer] : group) out.push_back(&buffer);
  return out;
}

/// Whether rounding gives those numbers.
bool rounds_to(std::span<const float> masters, std::span<const float> weights, Dtype dtype) {
  bool all = true;
  visit_float(dtype, [&]<class T>() {
    for (std::size_t i = 0; i < masters.size() && all; ++i) {
      const auto rounded = static_cast<float>(T(masters[i]));
      all = std::memcmp(&rounded, &weights[i], sizeof rounded) == 0;
    }
  });
  return all;
}

}  // namespace

FlatLayout::FlatLayout(const Checkpoint& checkpoint, const std::vector<FlatOptimizer>& optimizers)
    : model_(checkpoint.model()),
      where_(checkpoint.iteration().directory.string()),
      ways_(degrees_of(checkpoint.arguments())),
      tied_(!checkpoint.arguments().flag("untie_embeddings_and_output_weights")) {
  const bool experts =
      std::ranges::any_of(model_.all(), [](const auto& one) { return is_of_experts(one.first); });
  experts_apart_ = ways_.ep > 1 && experts;
  dense_.resize(std::size_t(ways_.tp * ways_.pp));
  experts_.resize(experts_apart_ ? std::size_t(ways_.experts_tp * ways_.ep * ways_.pp) : 0);
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    auto& groups = experts_apart_ && i > 0 && i + 1 == optimizers.size() ? experts_ : dense_;
    for (const auto& [number, group] : optimizers[i]) {
      if (number >= std::int64_t(groups.size())) groups.resize(std::size_t(number) + 1);
      std::ranges::copy(buffers_in(group), std::back_inserter(groups[std::size_t(number)]));
    }
  }
  pieces_ = std::ssize(dense_.front());
  const bool all =
      dense_.size() == std::size_t(ways_.tp * ways_.pp) &&
      std::ranges::all_of(dense_, [&](const auto& group) { return std::ssize(group) == pieces_; });
  if (!all || pieces_ == 0)
    why_not_ = text(where_, ": its optimizer has flat buffers of ", dense_.size(),
                    " groups of ranks or unlike ones, expected ", ways_.tp, " x ", ways_.pp,
                    " tensor and pipeline ranks with as many buffers each");
  else if (experts_apart_ && experts_.size() != std::size_t(ways_.experts_tp * ways_.ep * ways_.pp))
    why_not_ = text(where_, ": its optimizer has flat buffers of ", experts_.size(),
                    " groups of expert ranks, expected ", ways_.experts_tp, " x ", ways_.ep, " x ", ways_.pp);
  else if (experts && !experts_apart_ && ways_.experts_tp != ways_.tp)
    why_not_ = text(where_, ": its experts are cut among ", ways_.experts_tp,
                    " tensor ranks and all else among ", ways_.tp, ", and lie in the same flat buffers");
}

FlatLayout::Row FlatLayout::row_of(const std::vector<std::string>& names, bool of_experts,
                                   std::int64_t rank) const {
  Row out;
  for (auto at = names.rbegin(); at != names.rend(); ++at) {
    const std::string& name = *at;
    if (!is_parameter(name) || (experts_apart_ && is_of_experts(name)) != of_experts) continue;
    const TheirTensor* whole = model_.find(name);
    const bool copy = whole == nullptr && name == output;  // the embedding, for the last stage
    if (copy) whole = model_.find(words);
    if (whole == nullptr) continue;
    const std::int64_t ways = is_of_experts(name) ? ways_.experts_tp : ways_.tp;
    const Cut cut = cut_of(name, ways_);
    FlatParameter one{.name = name, .whole = whole, .portion = portion_of(*whole, cut, ways, rank)};
    out.lying.push_back(
        {.elements = one.portion.elements(), .alone = tied_ && ways_.pp > 1 && (copy || name == words)});
    if (copy || (cut == Cut::not_at_all && rank > 0)) one.portion.blocks.clear();
    out.parameters.push_back(std::move(one));
  }
  return out;
}

bool FlatLayout::fits(std::int64_t stage, const std::vector<std::string>& names,
                      std::int64_t bucket_size) const {
  const auto group = std::size_t(stage % ways_.pp * ways_.tp), piece = std::size_t(stage / ways_.pp);
  return slots_in(*dense_[group][piece], row_of(names, false, 0).lying, size_in(stage, bucket_size))
      .has_value();
}

bool FlatLayout::put(Tensors& into, State state, const FlatBuffer& buffer, const Row& row,
                     const Guess& guess) const {
  const auto slots = slots_in(buffer, row.lying, guess.bucket_size);
  if (!slots) return false;
  for (std::size_t i = 0; i < slots->size(); ++i) {
    FlatParameter one = row.parameters[i];
    one.on_its_side = guess.on_its_side && is_of_experts(one.name);
    const Slot& slot = (*slots)[i];
    add_flat(into, one, buffer.buckets[slot.bucket].states[std::size_t(state)], slot.first);
  }
  return true;
}

bool FlatLayout::put_dense(Tensors& into, State state, const Guess& guess) const {
  for (std::int64_t stage = 0; stage < stages(); ++stage) {
    const std::vector<std::string> names = guess.names(stage, 0);
    const Guess here{{}, guess.on_its_side, size_in(stage, guess.bucket_size)};
    for (std::int64_t t = 0; t < ways_.tp; ++t) {
      const auto& group = dense_[std::size_t(stage % ways_.pp * ways_.tp + t)];
      const FlatBuffer& buffer = *group[std::size_t(stage / ways_.pp)];
      if (!put(into, state, buffer, row_of(names, false, t), here)) return false;
    }
  }
  return true;
}

// A piece of a model without experts has no buffer for them.
bool FlatLayout::put_experts(Tensors& into, State state, const Guess& guess) const {
  std::vector<std::size_t> taken(experts_.size());
  for (std::int64_t stage = 0; stage < stages() && experts_apart_; ++stage) {
    const Guess here{{}, guess.on_its_side, size_in(stage, guess.bucket_size)};
    for (std::int64_t e = 0; e < ways_.ep; ++e) {
      const std::vector<std::string> names = guess.names(stage, e);
      for (std::int64_t t = 0; t < ways_.experts_tp; ++t) {
        const Row row = row_of(names, true, t);
        if (row.lying.empty()) continue;
        const auto number = std::size_t(t + ways_.experts_tp * (e + ways_.ep * (stage % ways_.pp)));
        if (taken[number] == experts_[number].size()) return false;
        if (!put(into, state, *experts_[number][taken[number]++], row, here)) return false;
      }
    }
  }
  return std::ranges::equal(taken, experts_, {}, {}, &std::vector<const FlatBuffer*>::size);
}

std::optional<Tensors> FlatLayout::tensors(State state, const Guess& guess) const {
  Tensors out(where_);
  if (!put_dense(out, state, guess) || !put_experts(out, state, guess)) return std::nullopt;
  out.check_whole();
  return out;
}

States FlatLayout::states(const Guess& guess) const {
  States out(where_);
  auto masters = tensors(State::master, guess);
  if (!masters) {
    out.why_not = text(where_, ": its optimizer's flat buffers are not as long as their parameters");
    return out;
  }
  if (const std::string name = unproven(*masters, model_); !name.empty()) {
    out.why_not = text(where_, ": where the masters of ", name,
                       " should lie in its optimizer's flat buffers lie other numbers than its weights");
    return out;
  }
  out.masters = *std::move(masters);
  out.first_moments = tensors(State::first_moment, guess).value();
  out.second_moments = tensors(State::second_moment, guess).value();
  return out;
}

std::string unproven(const Tensors& masters, const Tensors& model) {
  std::vector<float> theirs, mine;
  for (const auto& [name, weights] : model.all()) {
    if (!is_parameter(name)) continue;
    const TheirTensor* master = masters.find(name);
    if (master == nullptr || master->shape != weights.shape) return name;
    theirs.resize(std::size_t(weights.columns()));
    mine.resize(theirs.size());
    for (std::int64_t row = 0; row < weights.rows(); ++row) {
      read(weights, row, 0, theirs);
      read(*master, row, 0, mine);
      if (!rounds_to(mine, theirs, weights.dtype)) return name;
    }
  }
  return "";
}

States proven(States states, const Checkpoint& checkpoint) {
  const std::string name = unproven(states.masters, checkpoint.model());
  if (!name.empty())
    states.why_not = text(checkpoint.iteration().directory.string(), ": its optimizer's masters of ", name,
                          " are other numbers than its weights were rounded from");
  return states;
}

}  // namespace weft::exchange::megatron
