#include "weft/mesh/draw.h"

#include <algorithm>
#include <vector>

namespace weft {
namespace {

std::string right(const std::string& word, std::size_t width) {
  return std::string(width > word.size() ? width - word.size() : 0, ' ') + word;
}

/// Along which ranks of a stage lie.
std::vector<Axis> shown(View view) {
  std::vector<Axis> out;
  for (int axis = 0; axis < axes; ++axis)
    if ((axes_of(view) - Axis::pp).holds(Axis(axis))) out.push_back(Axis(axis));
  return out;
}

/// "tp 2, cp 2, dp 1"
std::string degrees(const ParallelLayout& layout, View view) {
  std::string out;
  for (const Axis axis : shown(view))
    out += (out.empty() ? "" : ", ") + names(axis) + " " + std::to_string(layout.degree(axis));
  return out;
}

std::string cell(const std::string& word) { return right(word, 5); }

std::string header(const ParallelLayout& layout) {
  std::string out = cell("rank") + "  ";
  for (const View view : {View::dense, View::experts}) {
    if (!layout.has(view)) continue;
    for (const Axis axis : shown(view)) out += cell(names(axis));
    out += "  ";
  }
  return out;
}

std::string places(const ParallelLayout& layout, int rank) {
  const Coordinate at = layout.at(rank);
  std::string out = cell(std::to_string(rank)) + "  ";
  for (const View view : {View::dense, View::experts}) {
    if (!layout.has(view)) continue;
    for (const Axis axis : shown(view)) out += cell(std::to_string(at[std::size_t(axis)]));
    out += "  ";
  }
  return out;
}

/// Without what only fills up.
std::string line(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string left(std::string word, std::size_t width) {
  word.resize(std::max(width, word.size()), ' ');
  return word;
}

std::string circles(const ParallelLayout& layout, Axes along, const std::string& what) {
  const auto groups = layout.groups(along);
  if (groups.front().size() == 1) return "";
  std::string out = left(names(along), 9) + left(what, 30);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    out += i > 0 ? " |" : "";
    for (const int rank : groups[i]) out += " " + std::to_string(rank);
  }
  return out + "\n";
}

}  // namespace

std::string draw_places(const ParallelLayout& layout) {
  const int stages = layout.degree(Axis::pp), each = layout.world() / stages;
  const bool experts = layout.has(View::experts);
  std::string out = std::to_string(layout.world()) + " ranks, " + std::to_string(stages) +
                    (stages == 1 ? " stage of " : " stages of ") + degrees(layout, View::dense);
  if (experts)
    out += "; experts see a stage's " + std::to_string(each) + " as " + degrees(layout, View::experts);
  out += "\n";
  for (int stage = 0; stage < stages; ++stage) {
    out += "\n" + line("stage " + std::to_string(stage)) + line(header(layout));
    for (int rank = 0; rank < layout.world(); ++rank)
      if (layout.at(rank)[std::size_t(Axis::pp)] == stage) out += line(places(layout, rank));
  }
  out += "\n" + circles(layout, Axis::tp, "matrices and heads are cut") +
         circles(layout, Axis::cp, "sequences are cut") + circles(layout, Axis::pp, "hidden states travel") +
         circles(layout, data_axes(View::dense), "gradients are added");
  if (experts)
    out += circles(layout, Axis::etp, "an expert is cut") +
           circles(layout, {Axis::etp, Axis::ep}, "tokens travel to experts") +
           circles(layout, data_axes(View::experts), "experts' gradients are added");
  return out;
}

}  // namespace weft
