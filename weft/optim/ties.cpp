// Ranks of a pipeline tell one another the names of what they hold, and each name gets a circle of its own.
#include "weft/optim/ties.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft {
namespace {

/// A line each: the use, and the name.
std::string said_of(const std::vector<const Parameter*>& tied) {
  std::string out;
  for (const Parameter* parameter : tied)
    out += text(out.empty() ? "" : "\n", parameter->use, ' ', parameter->name);
  return out;
}

}  // namespace

Ties::Ties(const std::vector<const Parameter*>& tied, const ProcessMesh* mesh) {
  std::map<std::string, int> next;
  if (mesh != nullptr && mesh->along(Axis::pp).size() > 1) next = meet(tied, mesh->along(Axis::pp));
  for (const Parameter* parameter : tied) {
    copies_[parameter] = next[parameter->name]++;
    count_use(parameter->name, parameter->use);
  }
}

void Ties::count_use(const std::string& name, int use) { uses_[name] = std::max(uses_[name], use + 1); }

std::map<std::string, int> Ties::meet(const std::vector<const Parameter*>& tied, Communicator& pipeline) {
  const std::vector<std::string> told = pipeline.tell_all(said_of(tied));
  std::map<std::string, bool> held_here;  // by name, of all ranks
  std::map<std::string, int> before;
  for (int rank = 0; rank < pipeline.size(); ++rank)
    for (const std::string_view word : split(told[std::size_t(rank)], '\n')) {
      if (word.empty()) continue;
      const std::size_t space = word.find(' ');
      const std::string name(word.substr(space + 1));
      count_use(name, std::stoi(std::string(word.substr(0, space))));
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
