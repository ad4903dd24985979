#include "weft/model/partition.h"

#include <algorithm>
#include <cctype>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr int most_stages = 1 << 16;  // of a layout: repetitions multiply quickly
constexpr int most_within = 100;      // parentheses within each other

/// Writes a layout's repetitions out: "(t|)*2" and "t*2" become "t|t|" and "tt".
class Unrolled {
 public:
  explicit Unrolled(const std::string& layout) : layout_(layout) {}
  std::string text() {
    std::string out = sequence();
    if (at_ < layout_.size()) refuse("a ')' that closes nothing");
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(Kind::usage, "{parallel.layout} '", layout_, "': ", why, " at character ", at_ + 1,
         "; stages stand between |, made of E, t, m and L, repeated by *n or (…)*n");
  }
  bool more() const { return at_ < layout_.size(); }

  std::string sequence() {
    std::string out;
    while (more() && layout_[at_] != ')') {
      const std::string piece = item();
      const int times = repetitions();
      if (std::size_t(times) * piece.size() + out.size() > most_stages) refuse("too many stages");
      for (int i = 0; i < times; ++i) out += piece;
    }
    return out;
  }
  std::string item() {
    const char c = layout_[at_];
    if (c == '(') {
      if (++within_ > most_within) refuse(weft::text("more than ", most_within, " '(' within each other"));
      ++at_;
      std::string inner = sequence();
      if (!more()) refuse("a '(' that nothing closes");
      ++at_;
      --within_;
      return inner;
    }
    if (c != ',' && c != ' ' && c != 'E' && c != 't' && c != 'm' && c != 'L' && c != '|')
      refuse(std::string("'") + c + "'");
    ++at_;
    return c == ',' || c == ' ' ? "" : std::string(1, c);
  }
  int repetitions() {
    if (!more() || layout_[at_] != '*') return 1;
    ++at_;
    int times = 0;
    if (!more() || std::isdigit(static_cast<unsigned char>(layout_[at_])) == 0) refuse("no number after *");
    for (; more() && std::isdigit(static_cast<unsigned char>(layout_[at_])) != 0; ++at_)
      if (times = times * 10 + (layout_[at_] - '0'); times > most_stages) refuse("too many repetitions");
    return times;
  }

  const std::string& layout_;
  std::size_t at_ = 0;
  int within_ = 0;
};

std::vector<StagePart> parts_of(const std::vector<int>& counts) {
  std::vector<StagePart> parts;
  int layer = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    parts.push_back(
        {.first_layer = layer, .layers = counts[i], .embeds = i == 0, .measures = i + 1 == counts.size()});
    layer += counts[i];
  }
  return parts;
}

std::vector<StagePart> by_layout(int layers, const StageCut& cut) {
  const std::string text = Unrolled(cut.layout).text();
  const auto refuse = [&](const auto&... why) {
    fail(Kind::usage, "{parallel.layout} '", cut.layout, "': ", why...);
  };
  std::vector<int> counts{0};
  for (const char c : text) {
    if (c == '|') counts.push_back(0);
    if (c == 't') ++counts.back();
  }
  const auto held = std::count(text.begin(), text.end(), 't');
  const auto further = std::count(text.begin(), text.end(), 'm');
  if (text.empty() || text.front() != 'E' || std::count(text.begin(), text.end(), 'E') != 1)
    refuse("E, the embedding, must stand first, and only there");
  if (text.back() != 'L' || std::count(text.begin(), text.end(), 'L') != 1)
    refuse("L, the loss, must stand last, and only there");
  if (further != cut.ahead)
    refuse("it holds ", further, " layers of further tokens, {model.ahead.depths} says ", cut.ahead);
  if (text.find('m') < text.size() - 1 - std::size_t(further))
    refuse("m, a layer of further tokens, must stand between the last t and L");
  if (held != layers) refuse("it holds ", held, " layers, {model.layers} says ", layers);
  if (int(counts.size()) % cut.ranks != 0)
    refuse("its ", counts.size(), " stages cannot be shared by ", cut.ranks, " pipeline ranks");
  return parts_of(counts);
}

/// Layers of every chunk of each rank, where the ends have numbers of their own.
std::vector<StagePart> by_ends(int layers, const StageCut& cut) {
  const int given = (cut.first_layers > 0) + (cut.last_layers > 0);
  const int middle = layers - cut.first_layers - cut.last_layers;
  const int others = cut.ranks - given;
  if (cut.count_embedding || cut.count_loss)
    fail(Kind::usage,
         "an uneven first or last stage says how many layers stand there: leave "
         "{parallel.count_embedding} and {parallel.count_loss} out");
  if (others < 0 || middle < 0 || (others == 0 ? middle != 0 : middle % others != 0))
    fail(Kind::usage, "of ", layers, " layers, ", cut.first_layers, " on the first and ", cut.last_layers,
         " on the last of ", cut.ranks, " pipeline ranks leave ", middle, " that ", std::max(others, 0),
         " others cannot share evenly");
  std::vector<int> counts;
  for (int stage = 0; stage < cut.ranks * cut.chunks; ++stage) {
    const int rank = stage % cut.ranks;
    int of_rank = others > 0 ? middle / others : 0;
    if (rank == 0 && cut.first_layers > 0) of_rank = cut.first_layers;
    if (rank == cut.ranks - 1 && cut.last_layers > 0) of_rank = cut.last_layers;
    if (of_rank % cut.chunks != 0)
      fail(Kind::usage, of_rank, " layers of pipeline rank ", rank, " cannot be shared by ", cut.chunks,
           " virtual stages");
    counts.push_back(of_rank / cut.chunks);
  }
  return parts_of(counts);
}

std::vector<StagePart> evenly(int layers, const StageCut& cut) {
  const int stages = cut.ranks * cut.chunks;
  const int units = layers + cut.count_embedding + cut.count_loss;
  if (units % stages != 0)
    fail(Kind::usage, units,
         cut.count_embedding || cut.count_loss ? " layers, embedding and output counted," : " layers",
         " cannot be shared evenly by ", stages, " pipeline stages; ",
         "{parallel.first_stage_layers} and {parallel.last_stage_layers} cut them unevenly");
  std::vector<int> counts(std::size_t(stages), units / stages);
  counts.front() -= cut.count_embedding;
  counts.back() -= cut.count_loss;
  return parts_of(counts);
}

}  // namespace

std::vector<StagePart> cut_stages(int layers, const StageCut& cut) {
  if (!cut.layout.empty()) return by_layout(layers, cut);
  if (cut.first_layers > 0 || cut.last_layers > 0) return by_ends(layers, cut);
  return evenly(layers, cut);
}

}  // namespace weft
