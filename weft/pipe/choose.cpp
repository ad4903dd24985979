// The table of names, and the text form: a word a computation.
#include "weft/pipe/choose.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/nearest.h"
#include "weft/pipe/rehearse.h"

namespace weft::pipe {
namespace {

constexpr std::string_view letters = "FBIW";  // in the order of Do

bool one_stage_a_rank(std::string_view name) { return name == "gpipe" || name == "1f1b" || name == "zb-h1"; }

/// Else a rank would wait for every forward that the one before it computes beside a backward.
void check_beside(const Wanted& wanted, const std::string& name) {
  if (!wanted.beside || (wanted.ranks == 1 && name == "1f1b") || name == "interleaved") return;
  fail(Kind::usage, "pipeline schedule ", name, " of ", wanted.ranks,
       " ranks has no forwards beside backwards: {parallel.overlap_experts} needs {parallel.pp} 1, or "
       "{parallel.virtual_stages} 2 or more");
}

void check_chunks(const Wanted& wanted, const std::string& name) {
  if (one_stage_a_rank(name) && wanted.chunks > 1)
    fail(Kind::usage, "pipeline schedule ", name, " has one stage a rank, found ", wanted.chunks,
         ": interleaved and zb-v take more");
  if (name == "interleaved" && wanted.chunks < 2)
    fail(Kind::usage,
         "pipeline schedule interleaved needs virtual stages: ", "{parallel.virtual_stages} 2 or more");
  if (name == "zb-v" && wanted.chunks != 2)
    fail(Kind::usage, "pipeline schedule zb-v has two stages a rank, found ", wanted.chunks);
}

[[noreturn]] void unknown(const std::string& name) {
  std::string all;
  for (const std::string_view one : schedule_names) all += text(all.empty() ? "" : ", ", one);
  fail(Kind::usage, "pipeline schedule '", name, "' is neither a file nor one of ", all,
       did_you_mean(name, schedule_names));
}

bool is_file(const Wanted& wanted) { return !knows_schedule(wanted.name); }

Schedule from_file(const Wanted& wanted) {
  if (!std::filesystem::exists(wanted.name)) unknown(wanted.name);
  Schedule s = read_schedule(read_file(wanted.name), wanted.name);
  if (s.ranks != wanted.ranks)
    fail(Kind::usage, wanted.name, ": written for ", s.ranks, " pipeline ranks, ", wanted.ranks, " are here");
  return s;
}

Schedule from_fitting_file(const Wanted& wanted) {
  Schedule s = from_file(wanted);
  if (s.microbatches != wanted.microbatches)
    fail(Kind::usage, wanted.name, ": written for ", s.microbatches, " microbatches a step, ",
         wanted.microbatches, " are here");
  return s;
}

/// Reads the text form line by line.
class ScheduleReader {
 public:
  ScheduleReader(std::string_view script, const std::string& name) : in_(std::string(script)), name_(name) {}

  Schedule read() {
    for (std::string line; ++number_, std::getline(in_, line);) {
      std::istringstream words(line.substr(0, line.find('#')));
      std::string first;
      if (!(words >> first)) continue;
      if (first == "stages")
        stages(words);
      else if (first == "rank")
        rank(words);
      else
        refuse("'", first, "' begins no line: stages or rank does");
    }
    if (schedule_.home.empty()) fail(Kind::usage, name_, ": no line 'stages …' says where stages live");
    if (schedule_.microbatches == 0) fail(Kind::usage, name_, ": no line 'rank N: …' says what is done");
    return std::move(schedule_);
  }

 private:
  template <class... Words>
  [[noreturn]] void refuse(const Words&... words) const {
    fail(Kind::usage, name_, " line ", number_, ": ", words...);
  }
  int count(std::string_view word, int end) const {
    int value = -1;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || stop != word.data() + word.size() || value < 0 || value >= end)
      refuse("'", word, "' is not a number from 0 to ", end - 1);
    return value;
  }

  void stages(std::istringstream& words) {
    if (!schedule_.home.empty()) refuse("a second line 'stages …'");
    for (std::string word; words >> word;) schedule_.home.push_back(count(word, most));
    if (schedule_.home.empty()) refuse("'stages' names no rank");
    schedule_.ranks = 1 + *std::ranges::max_element(schedule_.home);
    for (int r = 0; r < schedule_.ranks; ++r)
      if (std::ranges::find(schedule_.home, r) == schedule_.home.end()) refuse("rank ", r, " holds no stage");
    schedule_.name = name_;
    schedule_.program.resize(std::size_t(schedule_.ranks));
  }
  void rank(std::istringstream& words) {
    if (schedule_.home.empty()) refuse("the line 'stages …' comes first");
    std::string word;
    words >> word;
    if (word.empty() || word.back() != ':') refuse("'rank N:' is not how this line begins");
    word.pop_back();
    const int rank = count(word, schedule_.ranks);
    while (words >> word) schedule_.program[std::size_t(rank)].push_back(action(word, rank));
  }
  Action action(std::string_view word, int rank) {
    const auto kind = letters.find(word.front());
    if (kind == std::string_view::npos)
      refuse("'", word, "' is no computation: F0 forward, B0 backward, I0 and W0 its two halves");
    const auto at = word.find('@');
    const int stage = at == std::string_view::npos ? only_stage(word, rank)
                                                   : count(word.substr(at + 1), schedule_.stages());
    if (schedule_.home[std::size_t(stage)] != rank)
      refuse("'", word, "': stage ", stage, " lives on rank ", schedule_.home[std::size_t(stage)]);
    const int microbatch = count(word.substr(1, at == std::string_view::npos ? at : at - 1), most);
    schedule_.microbatches = std::max(schedule_.microbatches, microbatch + 1);
    return {Do(kind), stage, microbatch};
  }
  int only_stage(std::string_view word, int rank) const {
    const auto& home = schedule_.home;
    if (std::ranges::count(home, rank) > 1)
      refuse("'", word, "': rank ", rank, " holds several stages, say which: ", word, "@0");
    return int(std::ranges::find(home, rank) - home.begin());
  }

  static constexpr int most = 1 << 16;
  std::istringstream in_;
  std::string name_;
  int number_ = 0;
  Schedule schedule_;
};

}  // namespace

bool knows_schedule(std::string_view name) {
  return name.empty() || std::ranges::find(schedule_names, name) != schedule_names.end();
}

Schedule make_schedule(const Wanted& wanted) {
  if (is_file(wanted)) {
    check_beside(wanted, wanted.name);
    return from_fitting_file(wanted);
  }
  const std::string name = !wanted.name.empty() ? wanted.name : wanted.chunks > 1 ? "interleaved" : "1f1b";
  check_chunks(wanted, name);
  check_beside(wanted, name);
  const int further = wanted.beside ? 1 : 0;
  if (name == "gpipe") return gpipe(wanted.ranks, wanted.microbatches);
  if (name == "1f1b") return one_f_one_b(wanted.ranks, wanted.microbatches, further);
  if (name == "zb-h1") return zero_bubble_h1(wanted.ranks, wanted.microbatches);
  if (name == "zb-v") return zero_bubble_v(wanted.ranks, wanted.microbatches);
  return interleaved(wanted.ranks, wanted.chunks, wanted.microbatches, wanted.group, further);
}

std::vector<int> stage_homes(const Wanted& wanted) {
  if (is_file(wanted)) return from_file(wanted).home;
  Wanted simplest = wanted;
  simplest.microbatches = wanted.ranks;
  simplest.group = 0;
  simplest.beside = false;
  return make_schedule(simplest).home;
}

std::string write_schedule(const Schedule& schedule) {
  std::string out = text("# ", schedule.name, ", microbatches a step: ", schedule.microbatches, "\nstages");
  for (const int rank : schedule.home) out += text(" ", rank);
  for (int r = 0; r < schedule.ranks; ++r) {
    const bool several = std::ranges::count(schedule.home, r) > 1;
    out += text("\nrank ", r, ":");
    for (const Action& a : schedule.program[std::size_t(r)]) {
      if (!computes(a.what)) continue;
      out += text(" ", letters[std::size_t(a.what)], a.microbatch);
      if (several) out += text("@", a.stage);
    }
  }
  return out + "\n";
}

Schedule read_schedule(std::string_view script, const std::string& name) {
  Schedule s = ScheduleReader(script, name).read();
  try {
    (void)rehearse(with_transfers(s));
  } catch (const Error& error) {
    fail(Kind::usage, error.what());
  }
  return s;
}

}  // namespace weft::pipe
