// Ranks of a pipeline tell one another the names of what they hold, and each name gets a circle of its own.
#include "weft/optim/ties.h"

#include "weft/base/format.h"

namespace weft {
namespace {

std::string names_of(const std::vector<const Parameter*>& tied) {
  std::string out;
  for (const Parameter* parameter : tied) out += (out.empty() ? "" : "\n") + parameter->name;
  return out;
}

}  // namespace

Ties::Ties(const std::vector<const Parameter*>& tied, const ProcessMesh* mesh) {
  std::map<std::string, int> next;
  if (mesh != nullptr && mesh->along(Axis::pp).size() > 1) next = meet(tied, mesh->along(Axis::pp));
  for (const Parameter* parameter : tied) copies_[parameter] = next[parameter->name]++;
}

std::map<std::string, int> Ties::meet(const std::vector<const Parameter*>& tied, Communicator& pipeline) {
  const std::vector<std::string> told = pipeline.tell_all(names_of(tied));
  std::map<std::string, bool> held_here;  // by name, of all ranks
  std::map<std::string, int> before;
  for (int rank = 0; rank < pipeline.size(); ++rank)
    for (const std::string_view word : split(told[std::size_t(rank)], '\n')) {
      if (word.empty()) continue;
      const std::string name(word);
      held_here[name] |= rank == pipeline.rank();
      if (rank < pipeline.rank()) ++before[name];
    }
  for (const auto& [name, here] : held_here) {
    auto circle = pipeline.split(here ? 1 : 0, pipeline.rank());
    if (here && circle->size() > 1) holders_[name] = std::move(circle);
  }
  return before;
}

Communicator* Ties::holders(const std::string& name) const {
  const auto found = holders_.find(name);
  return found == holders_.end() ? nullptr : found->second.get();
}

}  // namespace weft
