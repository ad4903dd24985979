// The generators: who does what in which order, as data.
#include "weft/pipe/schedule.h"

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"

namespace weft::pipe {
namespace {

Schedule empty_program(std::string name, std::vector<int> home, int microbatches) {
  const int ranks = 1 + *std::ranges::max_element(home);
  Schedule s{std::move(name), ranks, microbatches, std::move(home), {}};
  s.program.resize(std::size_t(ranks));
  return s;
}

Schedule one_stage_per_rank(std::string name, int ranks, int microbatches) {
  std::vector<int> home(std::size_t(ranks), 0);
  std::iota(home.begin(), home.end(), 0);
  return empty_program(std::move(name), std::move(home), microbatches);
}

}  // namespace

const char* word(Do what) {
  switch (what) {
    case Do::forward:
      return "forward";
    case Do::backward:
      return "backward";
    case Do::backward_input:
      return "backward_input";
    case Do::backward_weight:
      return "backward_weight";
    case Do::send_activation:
      return "send_activation";
    case Do::recv_activation:
      return "recv_activation";
    case Do::send_gradient:
      return "send_gradient";
    case Do::recv_gradient:
      return "recv_gradient";
    case Do::post_activation:
      return "post_activation";
    case Do::post_gradient:
      return "post_gradient";
  }
  return "?";
}

Schedule gpipe(int ranks, int microbatches) {
  Schedule s = one_stage_per_rank("gpipe", ranks, microbatches);
  for (int r = 0; r < ranks; ++r) {
    auto& todo = s.program[std::size_t(r)];
    for (int m = 0; m < microbatches; ++m) todo.push_back({Do::forward, r, m});
    for (int m = 0; m < microbatches; ++m) todo.push_back({Do::backward, r, m});
  }
  return s;
}

Schedule one_f_one_b(int ranks, int microbatches, int further) {
  Schedule s = one_stage_per_rank("1f1b", ranks, microbatches);
  for (int r = 0; r < ranks; ++r) {
    auto& todo = s.program[std::size_t(r)];
    // Forwards before the first backward.
    const int ahead = std::min(ranks - r - 1 + further, microbatches);
    if (further > 0) s.beside.push_back(microbatches - ahead);
    for (int m = 0; m < ahead; ++m) todo.push_back({Do::forward, r, m});
    for (int m = 0; m < microbatches; ++m) {
      if (m + ahead < microbatches) todo.push_back({Do::forward, r, m + ahead});
      todo.push_back({Do::backward, r, m});
    }
  }
  return s;
}

// Stage s lives on rank s mod ranks. Microbatches go round in groups, chunk by chunk.
Schedule interleaved(int ranks, int chunks, int microbatches, int group, int further) {
  group = std::min(group == 0 ? ranks : group, microbatches);
  if (group < ranks || (microbatches % group != 0 && microbatches % group < ranks))
    fail(Kind::usage, "interleaved: ", microbatches, " microbatches in groups of ", group,
         " leave a group smaller than ", ranks, " ranks");
  Schedule s{"interleaved", ranks, microbatches, {}, {}};
  for (int stage = 0; stage < ranks * chunks; ++stage) s.home.push_back(stage % ranks);
  s.program.resize(std::size_t(ranks));
  struct ChunkTurn {
    int chunk, microbatch;
  };
  std::vector<ChunkTurn> turns;
  for (int first = 0; first < microbatches; first += group)
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (int m = first; m < std::min(first + group, microbatches); ++m) turns.push_back({chunk, m});
  const int total = int(turns.size());
  for (int r = 0; r < ranks; ++r) {
    auto& todo = s.program[std::size_t(r)];
    const auto take_turn = [&](Do what, int k) {
      const auto [chunk, m] = turns[std::size_t(k)];
      todo.push_back({what, (what == Do::forward ? chunk : chunks - 1 - chunk) * ranks + r, m});
    };
    const int ahead = std::min((ranks - r - 1) * 2 + (chunks - 1) * group + further, total);
    if (further > 0) s.beside.push_back(total - ahead);
    for (int k = 0; k < ahead; ++k) take_turn(Do::forward, k);
    for (int k = 0; k < total; ++k) {
      if (k + ahead < total) take_turn(Do::forward, k + ahead);
      take_turn(Do::backward, k);
    }
  }
  return s;
}

// Rank r lets r weight gradients pile up before it starts paying them off: the input gradients travel
// sooner, and no rank remembers more microbatches than rank 0 does under 1F1B.
Schedule zero_bubble_h1(int ranks, int microbatches) {
  Schedule s = one_stage_per_rank("zb-h1", ranks, microbatches);
  for (int r = 0; r < ranks; ++r) {
    auto& todo = s.program[std::size_t(r)];
    const int ahead = std::min(ranks - r - 1, microbatches);
    int paid = 0;
    for (int m = 0; m < ahead; ++m) todo.push_back({Do::forward, r, m});
    for (int m = 0; m < microbatches; ++m) {
      if (m + ahead < microbatches) todo.push_back({Do::forward, r, m + ahead});
      todo.push_back({Do::backward_input, r, m});
      if (m >= r) todo.push_back({Do::backward_weight, r, paid++});
    }
    while (paid < microbatches) todo.push_back({Do::backward_weight, r, paid++});
  }
  return s;
}

namespace {

/// A rank's program under zb-v: `down` is its stage on the way to the last rank, `up` the one on the way
/// back. Counters run past the last microbatch, so that few microbatches are many of which some are left out.
class VProgram {
 public:
  VProgram(int down, int up, int microbatches) : down_{down}, up_{up}, microbatches_(microbatches) {}

  std::vector<Action> write(int rank, int ranks) {
    const int most = std::max(2 * ranks - 1, microbatches_);
    repeat(2 * (ranks - rank) - 1, [&] { forward(down_); });
    repeat(rank, [&] { forward(up_), forward(down_); });
    repeat(ranks - rank, [&] { forward(up_), input(up_), weight(up_); });
    while (up_.forwards < down_.forwards || down_.forwards < most) {
      if (down_.forwards < most) forward(down_);
      input(down_), weight(down_);
      forward(up_);
      input(up_), weight(up_);
    }
    // The way out: input gradients first, for others wait for them; weights fill the gaps.
    repeat(rank, [&] { input(down_), input(up_); });
    repeat(ranks - rank, [&] { input(down_), weight(down_); });
    while (up_.weights < up_.inputs) weight(up_);
    while (down_.weights < down_.inputs) weight(down_);
    return std::move(todo_);
  }

 private:
  struct Leg {
    int stage = 0, forwards = 0, inputs = 0, weights = 0;
  };
  template <class Work>
  static void repeat(int times, const Work& work) {
    for (int i = 0; i < times; ++i) work();
  }
  void add(Do what, int stage, int microbatch) {
    if (microbatch < microbatches_) todo_.push_back({what, stage, microbatch});
  }
  void forward(Leg& leg) { add(Do::forward, leg.stage, leg.forwards++); }
  void input(Leg& leg) { add(Do::backward_input, leg.stage, leg.inputs++); }
  void weight(Leg& leg) { add(Do::backward_weight, leg.stage, leg.weights++); }

  Leg down_, up_;
  int microbatches_;
  std::vector<Action> todo_;
};

}  // namespace

Schedule zero_bubble_v(int ranks, int microbatches) {
  std::vector<int> home;
  for (int r = 0; r < ranks; ++r) home.push_back(r);
  for (int r = ranks; r-- > 0;) home.push_back(r);
  Schedule s = empty_program("zb-v", std::move(home), microbatches);
  for (int r = 0; r < ranks; ++r)
    s.program[std::size_t(r)] = VProgram(r, 2 * ranks - 1 - r, microbatches).write(r, ranks);
  return s;
}

// By groups of as many microbatches as there are ranks, stage by stage: whatever an action needs stands
// before it in this one order, wherever stages live, so no rank can wait for ever.
Schedule forwards_only(std::vector<int> home, int microbatches) {
  Schedule s = empty_program("forwards", std::move(home), microbatches);
  s.group = s.ranks;
  for (int first = 0; first < microbatches; first += s.group)
    for (int stage = 0; stage < s.stages(); ++stage)
      for (int m = first; m < std::min(first + s.group, microbatches); ++m)
        s.program[std::size_t(s.home[std::size_t(stage)])].push_back({Do::forward, stage, m});
  return s;
}

Schedule forwards_then_backwards(std::vector<int> home, int microbatches) {
  Schedule s = forwards_only(std::move(home), microbatches);
  s.name = "gpipe";
  for (int first = 0; first < microbatches; first += s.ranks)
    for (int stage = s.stages() - 1; stage >= 0; --stage)
      for (int m = first; m < std::min(first + s.ranks, microbatches); ++m)
        s.program[std::size_t(s.home[std::size_t(stage)])].push_back({Do::backward, stage, m});
  return s;
}

Schedule with_transfers(Schedule s) {
  for (int r = 0; r < s.ranks; ++r) {
    std::vector<Action> all;
    for (const Action& a : s.program[std::size_t(r)]) {
      const auto elsewhere = [&](int stage) {
        return stage >= 0 && stage < s.stages() && s.home[std::size_t(stage)] != r;
      };
      const bool forward = a.what == Do::forward;
      const bool backward = a.what == Do::backward || a.what == Do::backward_input;
      if (forward && elsewhere(a.stage - 1)) all.push_back({Do::recv_activation, a.stage, a.microbatch});
      if (backward && elsewhere(a.stage + 1)) all.push_back({Do::recv_gradient, a.stage, a.microbatch});
      all.push_back(a);
      if (forward && elsewhere(a.stage + 1)) all.push_back({Do::send_activation, a.stage, a.microbatch});
      if (backward && elsewhere(a.stage - 1)) all.push_back({Do::send_gradient, a.stage, a.microbatch});
    }
    s.program[std::size_t(r)] = std::move(all);
  }
  return s;
}

Schedule posted_early(Schedule s) {
  for (auto& program : s.program) {
    std::vector<Action> all;
    std::size_t before = 0;  // where the latest computation stands in `all`
    for (const Action& a : program) {
      const bool activation = a.what == Do::recv_activation;
      if (activation || a.what == Do::recv_gradient) {
        const Action post{activation ? Do::post_activation : Do::post_gradient, a.stage, a.microbatch};
        all.insert(all.begin() + std::ptrdiff_t(before++), post);
      }
      if (computes(a.what)) before = all.size();
      all.push_back(a);
    }
    program = std::move(all);
  }
  return s;
}

namespace {

bool sends(const Action& a) { return a.what == Do::send_activation || a.what == Do::send_gradient; }

/// Where the backward stands that is computed right after the forward at `from`; else where the program ends.
std::size_t companion(const std::vector<Action>& program, std::size_t from) {
  std::size_t at = from + 1;
  while (at < program.size() && !computes(program[at].what)) ++at;
  return at == program.size() || program[at].what == Do::forward ? program.size() : at;
}

}  // namespace

Schedule beside_each_other(Schedule s) {
  for (std::size_t r = 0; r < s.beside.size(); ++r) {
    if (s.beside[r] == 0) continue;
    std::vector<Action>& program = s.program[r];
    std::vector<Action> all;
    for (std::size_t at = 0; at < program.size(); ++at) {
      const std::size_t other = program[at].what == Do::forward ? companion(program, at) : program.size();
      if (other == program.size()) {
        all.push_back(program[at]);
        continue;
      }
      for (std::size_t i = at + 1; i < other; ++i)
        if (!sends(program[i])) all.push_back(program[i]);
      all.insert(all.end(), {program[at], program[other]});
      for (std::size_t i = at + 1; i < other; ++i)
        if (sends(program[i])) all.push_back(program[i]);
      at = other;
    }
    program = std::move(all);
  }
  return s;
}

}  // namespace weft::pipe
