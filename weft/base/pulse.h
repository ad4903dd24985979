// What every rank of this machine is doing, in memory that its supervisor reads without asking it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weft {

enum class Section : std::uint32_t { starting, training, evaluating, saving, ending };
constexpr std::size_t sections = 5;
const char* name(Section section);

/// What ranks of a circle say together, or to each other.
enum class Spoken : std::uint32_t {
  nothing,
  barrier,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  split,
  send,
  recv
};
const char* name(Spoken word);

/// A rank's lines of the board. One thread writes; another process reads whenever it likes, and then sees
/// each number whole, but not all of one moment: who hangs writes no more, so of it the reading is right.
struct PulseLines {
  static constexpr std::size_t most_circles = 32;
  struct Circle {
    std::atomic<std::uint64_t> id, words;  // words: begun so far
    std::atomic<std::int32_t> place, size;
  };
  std::atomic<std::uint64_t> beat;  // nanoseconds of the steady clock at the last change; 0: nobody writes
  std::atomic<std::int32_t> rank, kin;
  std::atomic<std::uint32_t> section, word, circles;
  std::atomic<std::int32_t> circle, peer;  // of what it waits for; peer: -1 for all
  std::atomic<std::int64_t> step, steps_done, number;
  std::atomic<std::uint64_t> longest_step, worked;  // nanoseconds; worked: in all steps, but for waiting
  std::array<std::atomic<std::uint64_t>, sections> longest_in, left;  // nanoseconds; how often it was left
  std::array<Circle, most_circles> of;
};

/// A rank's hand on its lines. Without lines it does nothing, so nobody asks whether somebody watches.
class Pulse {
 public:
  Pulse() = default;
  explicit Pulse(PulseLines* lines) : lines_(lines) {}

  /// Ranks of one kin do the same work: how long one takes says how long another should.
  void begin(int rank, int kin);
  void enter(Section section);
  void begin_step(std::int64_t step);
  void end_step();
  /// A circle that this rank sits in, under a number that all its ranks make alike. Returns its place among
  /// this rank's; -1 where there is no room to remember it.
  int sits_in(std::uint64_t circle, int place, int size);
  void spoke(int circle);

  struct Wait {
    Spoken word = Spoken::nothing;
    int circle = -1, peer = -1;
    std::int64_t number = 0;
  };
  void waits(const Wait& wait);
  void goes_on();

 private:
  void beat();
  PulseLines* lines_ = nullptr;
  void go_to(Section section);
  std::uint64_t step_began_ = 0, wait_began_ = 0, waited_ = 0, section_began_ = 0;
  std::int64_t steps_ = 0;
};

/// Says that a rank waits, for as long as it lives.
class Waiting {
 public:
  Waiting(Pulse* pulse, const Pulse::Wait& wait) : pulse_(pulse) {
    if (pulse_ != nullptr) pulse_->waits(wait);
  }
  ~Waiting() {
    if (pulse_ != nullptr) pulse_->goes_on();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Pulse* pulse_;
};

/// A rank's lines as they were read.
struct PulseReading {
  struct Circle {
    std::uint64_t id = 0, words = 0;
    int place = 0, size = 0;
  };
  double beat = 0;  // seconds of the steady clock
  int rank = 0, kin = 0;
  Section section = Section::starting;
  std::int64_t step = 0, steps_done = 0;
  double longest_step = 0, worked = 0;  // seconds
  double longest_here = 0;              // seconds in this section, when it was entered before
  std::int64_t was_here = 0;            // and how often
  Spoken word = Spoken::nothing;
  int circle = -1, peer = -1;
  std::int64_t number = 0;
  std::vector<Circle> circles;
};

/// A file that processes of one machine share as memory: lines for each rank that runs here.
class PulseBoard {
 public:
  static constexpr int most_ranks = 1024;
  static PulseBoard make(const std::filesystem::path& file);
  static PulseBoard open(const std::filesystem::path& file);
  /// That this process alone sees.
  static PulseBoard alone();
  PulseBoard(PulseBoard&& other) noexcept;
  PulseBoard& operator=(PulseBoard&&) = delete;
  ~PulseBoard();

  /// Of the n-th rank that runs here.
  Pulse pulse(int local_rank) const;
  /// All that have begun.
  std::vector<PulseReading> read() const;

 private:
  explicit PulseBoard(int descriptor, const std::filesystem::path& file);
  PulseLines* lines_;
};

}  // namespace weft
