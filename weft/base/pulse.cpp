// A mapped file of atomics.
#include "weft/base/pulse.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // or processes could not share it
constexpr std::size_t board_bytes = sizeof(PulseLines) * std::size_t(PulseBoard::most_ranks);
constexpr double nanoseconds = 1e-9;
constexpr std::int64_t first_steps = 2;  // take longer than all others, and say nothing of them

std::uint64_t now() {
  return std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::steady_clock::now().time_since_epoch())
                           .count());
}

template <class T, class U>
void put(std::atomic<T>& to, U value) {
  to.store(T(value), std::memory_order_relaxed);
}
template <class T>
T get(const std::atomic<T>& from) {
  return from.load(std::memory_order_relaxed);
}

PulseReading reading_of(const PulseLines& l) {
  PulseReading out{.beat = double(get(l.beat)) * nanoseconds,
                   .rank = get(l.rank),
                   .kin = get(l.kin),
                   .section = static_cast<Section>(std::min(get(l.section), std::uint32_t(Section::ending))),
                   .step = get(l.step),
                   .steps_done = get(l.steps_done),
                   .longest_step = double(get(l.longest_step)) * nanoseconds,
                   .worked = double(get(l.worked)) * nanoseconds,
                   .longest_here = 0,
                   .was_here = 0,
                   .word = static_cast<Spoken>(std::min(get(l.word), std::uint32_t(Spoken::recv))),
                   .circle = get(l.circle),
                   .peer = get(l.peer),
                   .number = get(l.number),
                   .circles = {}};
  out.longest_here = double(get(l.longest_in[std::size_t(out.section)])) * nanoseconds;
  out.was_here = std::int64_t(get(l.left[std::size_t(out.section)]));
  const auto circles = std::min<std::size_t>(get(l.circles), PulseLines::most_circles);
  for (std::size_t i = 0; i < circles; ++i)
    out.circles.push_back({get(l.of[i].id), get(l.of[i].words), get(l.of[i].place), get(l.of[i].size)});
  if (out.circle >= int(circles)) out.circle = -1;
  return out;
}

}  // namespace

const char* name(Section section) {
  constexpr std::array names{"starting", "training", "evaluating", "saving", "ending"};
  return names[std::size_t(section)];
}

const char* name(Spoken word) {
  constexpr std::array names{"nothing",    "barrier",   "all_reduce", "all_gather", "reduce_scatter",
                             "all_to_all", "broadcast", "split",      "send",       "recv"};
  return names[std::size_t(word)];
}

void Pulse::beat() { lines_->beat.store(now(), std::memory_order_release); }

void Pulse::begin(int rank, int kin) {
  if (lines_ == nullptr) return;
  put(lines_->rank, rank);
  put(lines_->kin, kin);
  beat();
}

void Pulse::go_to(Section section) {
  const auto before = std::size_t(get(lines_->section));
  if (before == std::size_t(section)) return;
  const std::uint64_t then = now(), took = then - section_began_;
  if (section_began_ != 0) {
    put(lines_->longest_in[before], std::max(get(lines_->longest_in[before]), took));
    put(lines_->left[before], get(lines_->left[before]) + 1);
  }
  section_began_ = then;
  put(lines_->section, section);
}

void Pulse::enter(Section section) {
  if (lines_ == nullptr) return;
  go_to(section);
  beat();
}

void Pulse::begin_step(std::int64_t step) {
  if (lines_ == nullptr) return;
  put(lines_->step, step);
  go_to(Section::training);
  step_began_ = now();
  waited_ = 0;
  beat();
}

void Pulse::end_step() {
  if (lines_ == nullptr) return;
  const std::uint64_t took = now() - step_began_;
  if (++steps_ > first_steps) {
    if (took > get(lines_->longest_step)) put(lines_->longest_step, took);
    put(lines_->worked, get(lines_->worked) + took - std::min(took, waited_));
    put(lines_->steps_done, steps_ - first_steps);
  }
  beat();
}

int Pulse::sits_in(std::uint64_t circle, int place, int size) {
  if (lines_ == nullptr) return -1;
  const std::uint32_t at = get(lines_->circles);
  if (at >= PulseLines::most_circles) return -1;
  PulseLines::Circle& c = lines_->of[at];
  put(c.id, circle);
  put(c.words, 0);
  put(c.place, place);
  put(c.size, size);
  lines_->circles.store(at + 1, std::memory_order_release);
  return int(at);
}

void Pulse::spoke(int circle) {
  if (lines_ == nullptr || circle < 0) return;
  auto& words = lines_->of[std::size_t(circle)].words;
  put(words, get(words) + 1);
}

void Pulse::waits(const Wait& wait) {
  if (lines_ == nullptr || wait_began_ != 0) return;
  wait_began_ = now();
  put(lines_->circle, wait.circle);
  put(lines_->peer, wait.peer);
  put(lines_->number, wait.number);
  put(lines_->word, wait.word);
  lines_->beat.store(wait_began_, std::memory_order_release);
}

void Pulse::goes_on() {
  if (lines_ == nullptr || wait_began_ == 0) return;
  const std::uint64_t then = now();
  waited_ += then - wait_began_;
  wait_began_ = 0;
  put(lines_->word, Spoken::nothing);
  lines_->beat.store(then, std::memory_order_release);
}

PulseBoard::PulseBoard(int descriptor, const std::filesystem::path& file) : lines_(nullptr) {
  if (descriptor < 0) fail_errno("open", file, errno);
  const bool sized = ftruncate(descriptor, off_t(board_bytes)) == 0;
  void* at =
      sized ? mmap(nullptr, board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : MAP_FAILED;
  const int wrong = errno;
  close(descriptor);
  if (at == MAP_FAILED) fail_errno("map", file, wrong);
  lines_ = static_cast<PulseLines*>(at);  // zeros of a new file are atomics that hold zero
}

PulseBoard PulseBoard::make(const std::filesystem::path& file) {
  return PulseBoard(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), file);
}

// Lines of another length are read as nonsense: a rank would seem to hang that does not.
PulseBoard PulseBoard::open(const std::filesystem::path& file) {
  std::error_code wrong;
  const auto bytes = std::filesystem::file_size(file, wrong);
  if (!wrong && bytes != board_bytes)
    fail(Kind::usage, file.string(), " has ", bytes, " bytes, and ", board_bytes,
         " were expected: weft was replaced while its launcher ran; start the job again");
  return PulseBoard(::open(file.c_str(), O_RDWR | O_CLOEXEC), file);
}

PulseBoard PulseBoard::alone() {
  return PulseBoard(memfd_create("weft_pulse", MFD_CLOEXEC), "a board in memory");
}

PulseBoard::PulseBoard(PulseBoard&& other) noexcept : lines_(std::exchange(other.lines_, nullptr)) {}

PulseBoard::~PulseBoard() {
  if (lines_ != nullptr) munmap(lines_, board_bytes);
}

Pulse PulseBoard::pulse(int local_rank) const {
  return local_rank < most_ranks ? Pulse(lines_ + local_rank) : Pulse();
}

std::vector<PulseReading> PulseBoard::read() const {
  std::vector<PulseReading> out;
  for (int i = 0; i < most_ranks; ++i)
    if (lines_[i].beat.load(std::memory_order_acquire) != 0) out.push_back(reading_of(lines_[i]));
  return out;
}

}  // namespace weft
