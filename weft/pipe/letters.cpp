#include "weft/pipe/letters.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/base/error.h"

namespace weft::pipe {
namespace {

/// By its reader: the stage, the microbatch, and whether it is an activation.
struct Letter {
  int stage, microbatch;
  bool activation;
  auto operator<=>(const Letter&) const = default;
};
using Way = std::tuple<int, int, bool>;  // from rank, to rank, whether of activations
using Letters = std::map<Way, std::vector<Letter>>;

struct Read {
  int from;
  Letter letter;
};

/// A receive that was posted is read where it was posted.
Read read_by(const Schedule& s, const Action& a) {
  const bool activation = a.what == Do::recv_activation || a.what == Do::post_activation;
  const int writer = a.stage + (activation ? -1 : 1);
  return {s.home[std::size_t(writer)], {a.stage, a.microbatch, activation}};
}

struct Both {
  Letters sent, read;
};

void note(const Schedule& s, int rank, const Action& a, Both& out, std::set<Letter>& known) {
  if (computes(a.what)) return;
  if (a.what == Do::send_activation || a.what == Do::send_gradient) {
    const bool activation = a.what == Do::send_activation;
    const int reader = a.stage + (activation ? 1 : -1);
    out.sent[{rank, s.home[std::size_t(reader)], activation}].push_back({reader, a.microbatch, activation});
    return;
  }
  const Read read = read_by(s, a);
  if (known.insert(read.letter).second)
    out.read[{read.from, rank, read.letter.activation}].push_back(read.letter);
}

std::string say(const Letter& letter) {
  return text(letter.activation ? "activation" : "gradient", " of microbatch ", letter.microbatch,
              " for stage ", letter.stage);
}

}  // namespace

std::string overtaken_letter(const Schedule& schedule) {
  Both all;
  std::set<Letter> known;
  for (int rank = 0; rank < schedule.ranks; ++rank)
    for (const Action& a : schedule.program[std::size_t(rank)]) note(schedule, rank, a, all, known);
  for (const auto& [way, sent] : all.sent) {
    const std::vector<Letter>& read = all.read[way];
    const auto [a, b] = std::ranges::mismatch(sent, read);
    if (a != sent.end() && b != read.end())
      return text("rank ", std::get<0>(way), " sends rank ", std::get<1>(way), " the ", say(*a),
                  ", which reads the ", say(*b), " first");
  }
  return "";
}

}  // namespace weft::pipe
