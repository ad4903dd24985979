#include "weft/train/resume_weights.h"

#include <algorithm>
#include <map>
#include <span>

#include "weft/checkpoint/find.h"
#include "weft/checkpoint/load.h"
#include "weft/checkpoint/step.h"

namespace weft {

std::filesystem::path checkpoint_step(const std::filesystem::path& directory,
                                      std::vector<std::string>& notices) {
  std::error_code error;
  const bool is_step = std::filesystem::exists(directory / checkpoint::complete_name, error);
  return is_step ? directory : checkpoint::latest(directory, notices).path;
}

std::vector<checkpoint::Named> named_weights(const Weights& weights) {
  std::vector<checkpoint::Named> out;
  weights.each_master([&](const Held& held) { out.push_back({held.name, held.memory, held.pieces}); });
  return out;
}

std::vector<checkpoint::Named> named_before_experts(const Weights& weights) {
  std::vector<checkpoint::Named> out = named_weights(weights);
  std::erase_if(out, [](const checkpoint::Named& named) {
    const auto of = [&](std::string_view part) { return named.name.find(part) != std::string::npos; };
    return of(".router.") || of(".shared.") || of(".residual.") || of(".latent.");
  });
  constexpr std::string_view expert = ".experts.";
  for (checkpoint::Named& named : out) {
    const std::size_t at = named.name.find(expert);
    if (at == std::string::npos) continue;
    named.name.replace(at, named.name.find('.', at + expert.size()) - at, ".mlp");
  }
  return out;
}

std::vector<checkpoint::Named> named_states(const Optimizer& optimizer, OfRanks of_ranks) {
  std::vector<checkpoint::Named> out;
  optimizer.each_state([&](const Held& held) {
    if (held.of_ranks && of_ranks == OfRanks::left_out) return;
    out.push_back({held.name, held.memory, held.pieces});
  });
  return out;
}

std::vector<checkpoint::Named> named_to_save(const Weights& weights, const Optimizer& optimizer,
                                             ToSave what) {
  std::map<View, std::vector<std::int64_t>> shares;  // of a view's data-parallel ranks
  std::vector<checkpoint::Named> out;
  const auto visit = [&](const Held& held) {
    if (held.of_ranks && what != ToSave::all) return;
    out.push_back({held.name, held.memory, held.pieces});
    const Readers& readers = held.block.readers;
    if (readers.cut()) return;
    auto& all = shares[held.block.kind.view];
    all.resize(std::size_t(readers.ranks()));
    const auto writer = std::min_element(all.begin(), all.end());
    *writer += held.parameter.shape.elements();
    // Among the ranks of the model it stays as the mesh says: here every parameter is held whole.
    const int others = writer - all.begin() == readers.rank() ? 0 : 1;
    std::vector<Piece>& pieces = out.back().pieces;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      pieces[i].where.replica = held.parameter.pieces[i].where.replica + others;
  };
  const std::span<const Tensor> agreed = optimizer.agreed();
  weights.each_master([&](const Held& held) {
    if (agreed.empty()) return visit(held);
    const auto block = std::size_t(&held.block - weights.blocks().data());
    visit({held.name, held.parameter, agreed[block], held.pieces, held.block});
  });
  if (what != ToSave::weights) optimizer.each_state(visit);
  return out;
}

std::string load_weights(const std::filesystem::path& step, Weights& weights, Communicator& world) {
  std::string facts = checkpoint::load(step, named_weights(weights), world, checkpoint::Types::may_differ);
  weights.publish();
  return facts;
}

}  // namespace weft
