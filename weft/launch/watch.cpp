// A rank that others wait for and that waits for nobody is the missing one.
#include "weft/launch/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::launch {
namespace {

constexpr std::int64_t enough_steps = 3;     // to learn how long one takes
constexpr std::int64_t enough_times = 3;     // in a section that is none
constexpr double elsewhere = 2;              // times the least of steps, as disks are less even
constexpr std::int64_t steps_a_window = 10;  // below, one odd step would count for much
// But two windows and the part of one before them, of steps of half a minute, must fit into five minutes.
constexpr std::int64_t long_steps_a_window = 3;
constexpr double long_window = 60;  // seconds
constexpr std::int64_t most_steps = std::int64_t{1} << 50;
constexpr std::size_t most_ranks_watched = 1 << 17;
constexpr double slow = 1.2;      // less than the quarter that must be seen, as times are never quite even
constexpr double starting = 10;   // times a limit that a person set, until a rank has begun
constexpr double waits_long = 2;  // seconds, where one it waits for may be gone
constexpr double most_often = 0.05, least_often = 1;  // seconds between two looks

const Doing::Circle* seat_in(const Doing& rank, std::uint64_t circle) {
  for (const Doing::Circle& c : rank.circles)
    if (c.id == circle) return &c;
  return nullptr;
}

bool waits(const Doing& rank) { return rank.word != 0; }
/// Numbers come over a wire, and may be anything.
const char* word_of(const Doing& rank) {
  return name(static_cast<Spoken>(std::clamp(rank.word, 0, int(Spoken::recv))));
}

/// Those that have not come to where it waits.
std::vector<int> awaited_by(const Doing& rank, const std::vector<Doing>& all) {
  std::vector<int> out;
  for (const Doing& other : all) {
    const Doing::Circle* seat = seat_in(other, rank.circle);
    if (seat == nullptr || other.rank == rank.rank) continue;
    const bool awaited =
        rank.peer >= 0 ? seat->place == rank.peer : seat->words <= std::uint64_t(rank.number);
    if (awaited) out.push_back(other.rank);
  }
  return out;
}

std::string list_of(const std::vector<int>& ranks) {
  constexpr std::size_t shown = 16;
  std::string out = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size() && i < shown; ++i) out += text(i == 0 ? " " : ", ", ranks[i]);
  return ranks.size() > shown ? text(out, " and ", ranks.size() - shown, " more") : out;
}

std::string where(const Doing& rank) {
  const auto section = static_cast<Section>(std::clamp(rank.section, 0, int(Section::ending)));
  return rank.step > 0 ? text("in step ", rank.step, " (", name(section), ")")
                       : text("while ", name(section));
}

std::string line_of(const Doing& rank, const std::vector<Doing>& all) {
  if (!waits(rank)) return text("rank ", rank.rank, " waits for nobody, ", where(rank));
  const std::vector<int> others = awaited_by(rank, all);
  const std::string number = rank.peer >= 0 ? text(" tag ", rank.number) : text(" ", rank.number);
  return text("rank ", rank.rank, " waits in ", word_of(rank), number,
              others.empty() ? "" : text(" for ", list_of(others)), ", ", where(rank));
}

/// Nobody whom it waits for is missing: it only has to go on, and does not.
bool all_have_come(const Doing& rank, const std::vector<Doing>& all) {
  return waits(rank) && awaited_by(rank, all).empty();
}

/// Those whom somebody awaits and who wait for nobody; else those who do not wait; else those who wait where
/// all have come, as a rank that is stopped while it waits; else those who are awaited.
std::vector<int> missing_in(const std::vector<Doing>& all) {
  std::set<int> awaited;
  for (const Doing& rank : all)
    if (waits(rank))
      for (const int other : awaited_by(rank, all)) awaited.insert(other);
  std::vector<int> missing, idle, stuck;
  for (const Doing& rank : all) {
    const bool wanted = awaited.contains(rank.rank);
    if (!waits(rank)) idle.push_back(rank.rank);
    if (!waits(rank) && wanted) missing.push_back(rank.rank);
    if (wanted && all_have_come(rank, all)) stuck.push_back(rank.rank);
  }
  if (!missing.empty()) return missing;
  if (!idle.empty()) return idle;
  return stuck.empty() ? std::vector<int>(awaited.begin(), awaited.end()) : stuck;
}

}  // namespace

double Watch::limit_of(const PulseReading& rank) const {
  if (rules_.limit > 0) return rules_.limit;
  const auto seen = longest_.find(rank.section);
  const double longest = seen == longest_.end() ? 0 : seen->second;
  if (rank.section != Section::training && rank.was_here >= enough_times)
    return std::max(elsewhere * rules_.least, rules_.factor * std::max(longest, rank.longest_here));
  if (rank.section != Section::training || rank.steps_done < enough_steps)
    return std::max(rules_.before, rules_.factor * longest);
  return std::max(rules_.least, rules_.factor * std::max(longest, rank.longest_step));
}

double Watch::period() const {
  const double limit = rules_.limit > 0 ? rules_.limit : rules_.least;
  return std::clamp(limit / 10, most_often, least_often);
}

Watch::Stillness Watch::look(const std::vector<PulseReading>& ranks, double now) {
  const double late = now - looked_ - 2 * period() - 0.5;
  const bool held_up = looked_ > 0 && late > 0;
  looked_ = now;
  if (began_ == 0) began_ = now;
  if (ranks.empty()) {
    const double patience = rules_.limit > 0 ? starting * rules_.limit : rules_.before;
    return {.still = now - began_ > patience, .seconds = now - began_, .limit = patience};
  }
  double last = 0, limit = 0;
  for (const PulseReading& rank : ranks) {
    last = std::max(last, rank.beat);
    limit = std::max(limit, limit_of(rank));
  }
  if (held_up) alive_ = now;  // whoever held us up may have held them up too
  alive_ = std::max(alive_, last);
  const double seconds = now - alive_;
  const bool still = seconds > limit;
  double& longest = longest_[ranks.front().section];
  if (!still && !held_up) longest = std::max(longest, std::min(seconds, limit / rules_.factor));
  return {.still = still, .seconds = seconds, .limit = limit};
}

bool all_wait_but(const std::set<int>& ranks_gone, const std::vector<PulseReading>& all, double now) {
  return std::ranges::all_of(all, [&](const PulseReading& rank) {
    return ranks_gone.contains(rank.rank) || (rank.word != Spoken::nothing && now - rank.beat >= waits_long);
  });
}

Doing doing_of(const PulseReading& r, int round, double now) {
  Doing out{.round = round,
            .rank = r.rank,
            .section = int(r.section),
            .word = int(r.word),
            .peer = r.peer,
            .step = r.step,
            .number = r.number,
            .circle = r.circle >= 0 ? r.circles[std::size_t(r.circle)].id : 0,
            .still = now - r.beat,
            .circles = {}};
  for (const PulseReading::Circle& c : r.circles) out.circles.push_back({c.id, c.words, c.place});
  return out;
}

Hang hang_of(const std::vector<Doing>& ranks, double limit) {
  Hang out;
  if (ranks.empty()) return {.rank = 0, .what = "hangs", .lines = {}};
  const std::vector<int> missing = missing_in(ranks);
  const bool all_wait = std::all_of(ranks.begin(), ranks.end(), waits);
  out.rank = missing.empty() ? ranks.front().rank : missing.front();
  for (const Doing& rank : ranks) {
    const bool is_missing = std::find(missing.begin(), missing.end(), rank.rank) != missing.end();
    if (rank.rank == out.rank) {
      out.what = fmt::format("hangs {}: no sign of life for {:.1f} s, where {:.1f} s are much", where(rank),
                             rank.still, limit);
      if (all_have_come(rank, ranks))
        out.what += "; all have come to where it waits";
      else if (all_wait)
        out.what += "; all ranks wait for each other";
      if (!waits(rank)) continue;
    }
    out.lines.push_back(line_of(rank, ranks) +
                        (is_missing && rank.rank != out.rank ? "; it is missing too" : ""));
  }
  return out;
}

std::vector<std::string> Paces::note(const Pace& pace, double now) {
  // It came over a wire.
  if (pace.steps < 0 || pace.steps > most_steps || !std::isfinite(pace.worked)) return {};
  if (ranks_.size() >= most_ranks_watched && !ranks_.contains(pace.rank)) return {};
  auto [at, fresh] = ranks_.try_emplace(pace.rank, Rank{.first = pace, .last = pace, .since = now});
  at->second.last = pace;
  if (fresh) return {};
  const bool all_due = std::all_of(ranks_.begin(), ranks_.end(), [&](const auto& one) {
    const Rank& r = one.second;
    const double seconds = now - r.since;
    const std::int64_t steps = r.last.steps - r.first.steps;
    return seconds >= window_ && steps >= (seconds >= long_window ? long_steps_a_window : steps_a_window);
  });
  return all_due ? judge(now) : std::vector<std::string>();
}

/// The median of those that do the same; of a rank alone, its best.
double Paces::usual_for(int rank) const {
  const Rank& mine = ranks_.at(rank);
  std::vector<double> others;
  for (const auto& [id, other] : ranks_)
    if (id != rank && other.last.kin == mine.last.kin && other.pace > 0) others.push_back(other.pace);
  if (others.empty()) return mine.windows > 1 ? mine.best : mine.pace;
  const auto middle = others.begin() + std::ptrdiff_t((others.size() - 1) / 2);
  std::nth_element(others.begin(), middle, others.end());
  return *middle;
}

std::vector<std::string> Paces::judge(double now) {
  std::vector<std::string> out;
  for (auto& [id, r] : ranks_) {
    r.pace = (r.last.worked - r.first.worked) / double(r.last.steps - r.first.steps);
    r.best = r.windows == 0 ? r.pace : std::min(r.best, r.pace);
    ++r.windows;
  }
  for (auto& [id, r] : ranks_) {
    const double usual = usual_for(id);
    r.slow = usual > 0 && r.pace >= slow * usual ? r.slow + 1 : 0;
    if (r.slow == 0) r.said = false;
    if (r.slow >= 2 && !r.said) {
      r.said = true;
      out.push_back(
          fmt::format("launch: rank {} is slow: {:.1f} ms of work a step, where {:.1f} ms are usual, in "
                      "the last {:.0f} s",
                      id, 1e3 * r.pace, 1e3 * usual, 2 * (now - r.since)));
    }
  }
  for (auto& [id, r] : ranks_) {
    r.first = r.last;
    r.since = now;
  }
  return out;
}

}  // namespace weft::launch
