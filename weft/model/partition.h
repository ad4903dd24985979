// Which layers live on which pipeline stage: a model cut along its depth.
#pragma once

#include <string>
#include <vector>

namespace weft {

/// Which part of a model a stage is.
struct StagePart {
  int first_layer = 0;
  int layers = 0;
  bool embeds = true;    // the embedding stands first
  bool measures = true;  // final norm and head stand last
  bool operator==(const StagePart&) const = default;
};

inline bool holds_layer(const StagePart& part, int layer) {
  return part.first_layer <= layer && layer < part.first_layer + part.layers;
}

/// How to cut. Stage c * ranks + r is chunk c of rank r, and holds the layers that follow those of the stage
/// before.
struct StageCut {
  int ranks = 1, chunks = 1;
  int first_layers = 0, last_layers = 0;  // of the first and the last rank; 0: as many as the others
  bool count_embedding = false;           // as a layer, so that the first stage gets one less
  bool count_loss = false;                // the same at the end
  std::string layout;                     // "Et*3|(tt|)*2tL": all of it in words; the rest is then unused
  int ahead = 0;  // layers of further tokens, which stand behind all others: m in a layout
};

/// One part a stage, in the order that data flow through them. A layout says how many chunks a rank has:
/// stages / ranks.
std::vector<StagePart> cut_stages(int layers, const StageCut& cut);

}  // namespace weft
