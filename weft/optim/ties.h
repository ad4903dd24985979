// Which parameters are copies of one weight, and who holds the others.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/mesh/mesh.h"
#include "weft/nn/parameter.h"

namespace weft {

/// Parameters that are tied are copies of one weight if they have one name. Copies may live on ranks of a
/// pipeline or in stages of one rank; the first, by rank and then by stage, is the one that counts.
class Ties {
 public:
  /// This rank's tied parameters in the order of its stages. Collective over the pipeline, if there is one.
  Ties(const std::vector<const Parameter*>& tied, const ProcessMesh* mesh);
  /// Which of all the copies a parameter of this rank is.
  int copy(const Parameter& parameter) const { return copies_.at(&parameter); }
  /// The ranks that hold a copy of that name; null where this is the only one.
  Communicator* holders(const std::string& name) const;
  /// Of the weight of that name, by all its copies.
  int uses(const std::string& name) const { return uses_.at(name); }

 private:
  /// Makes the circles; returns how many copies of each name lie on ranks before this one.
  std::map<std::string, int> meet(const std::vector<const Parameter*>& tied, Communicator& pipeline);
  void count_use(const std::string& name, int use);
  std::map<const Parameter*, int> copies_;
  std::map<std::string, int> uses_;
  std::map<std::string, std::unique_ptr<Communicator>> holders_;
};

}  // namespace weft
