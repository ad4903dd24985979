// Who wrote and read every two bytes of the device's memory, and whether that had an order.
#include <algorithm>
#include <cstring>

#include "tests/support/gpu/quick.h"

namespace emulated {

bool ordered(Machine& m, Moment moment) {
  if (known_ordered(m, moment)) return true;
  const auto behind = std::ranges::upper_bound(m.history, moment, {}, &Machine::Began::at);
  const Machine::Began& began = *std::prev(behind);
  const Machine::Operation& before = m.operations[began.operation];
  const bool yes =
      began.operation == 0 || (before.stream < m.clock.size() && m.clock[before.stream] >= before.position);
  if (yes && behind != m.history.end()) {
    m.known_before[m.next_known] = {began.at, behind->at - began.at};
    m.next_known = (m.next_known + 1) % unsigned(m.known_before.size());
  }
  return yes;
}

namespace {

Machine& m = machine();

std::string told(const Stamp& who) {
  const bool of_now = who.moment >= m.operation_began;
  const auto began = std::ranges::upper_bound(m.history, Moment(who.moment), {}, &Machine::Began::at);
  const std::string stream = " of stream " + std::to_string(m.operations[std::prev(began)->operation].stream);
  if (who.several == whole) return "an operation" + stream;
  if (who.several >= lanes && who.several <= blocks) return "several threads";
  const std::string thread = "thread " + std::to_string(who.thread) + " of ";
  if (!of_now) return thread + "a kernel" + stream;
  const auto block = std::ranges::upper_bound(m.blocks_began, Moment(who.moment)) - m.blocks_began.begin();
  return thread + "block " + std::to_string(m.block_turns[std::size_t(block - 1)]);
}

/// One access, as its bytes are looked at one after another.
struct Access {
  Shadowed& of;
  const void* at;
  Touch how;
  const void* pc;
  Stamp mine;
  bool is_shared, is_noted;

  bool reads() const { return how == Touch::read; }
  std::string begun() const {
    const char* verb = reads() ? " reads " : how == Touch::release ? " frees " : " writes ";
    return told(mine) + verb +
           (is_shared ? "shared memory at byte " + std::to_string(of.byte_of(at))
                      : std::string("device memory"));
  }
  void say(const std::string& what) const { report(begun() + what, pc); }
};

/// Operations have the order of streams and events.
bool race(const Access& access, const Stamp& old) {
  if (old.moment >= m.operation_began) return race_within(m, old, access.mine, access.is_shared);
  return old.moment != 0 && !access.is_shared && !ordered(m, old.moment);
}

[[gnu::cold]] void say_race(const Access& access, const Cell& cell) {
  const bool after_write = race(access, cell.written);
  const Stamp& other = after_write ? cell.written : cell.read;
  access.say(", which " + told(other) + (after_write ? " has written" : " has read") +
             (other.moment >= m.operation_began ? ", with no barrier between"
                                                : ", with no order between their streams"));
}

void note_in(const Access& access, Cell& cell, std::size_t grains) {
  if (race(access, cell.written) || (!access.reads() && race(access, cell.read))) say_race(access, cell);
  const bool moves = note(m, cell, access.mine, access.reads(), access.is_shared);
  if (moves && access.how != Touch::allocate && access.how != Touch::release) m.meter.moved += grains * grain;
}

/// What becomes of a state. None: what was looked at is not alive.
std::uint8_t next_state(const Access& access, std::uint8_t state) {
  if (access.how == Touch::allocate) return std::uint8_t(alive | (state & split));
  if (!(state & alive)) {
    access.say(state & released ? ", which was freed" : ", outside of what was allocated");
    return 0;
  }
  if (access.reads() && !(state & filled)) access.say(", which nobody has written");
  if (state & in_flight) access.say(", to which an asynchronous copy is under way");
  if (access.how == Touch::release) return std::uint8_t(released | (state & split));
  return access.reads() ? state : std::uint8_t(state | filled);
}

/// Of one grain, or of two that have one cell. False where they are not alive.
bool check(const Access& access, std::size_t first, std::size_t grains) {
  std::uint8_t& state = access.of.states[first];
  const std::uint8_t next = next_state(access, state);
  if (next == 0) return false;
  if (access.is_noted) note_in(access, access.of.cell(first), grains);
  std::memset(&state, next, grains);
  return true;
}

/// Gives halves of a word each a cell, and takes that back when they have one past again.
void cut(Shadowed& of, std::size_t first) {
  if (of.states[first] & split) return;
  of.second_halves[first / 2] = of.cells[first / 2];
  for (const std::size_t i : {first, first + 1}) of.states[i] |= split;
}
void join(Shadowed& of, std::size_t first) {
  if (!same(of.cells[first / 2], of.second_halves[first / 2])) return;
  for (const std::size_t i : {first, first + 1}) of.states[i] &= std::uint8_t(~split);
}

/// Of those grains of a word that are from `first` on and before `end`.
bool check_halves(const Access& access, std::size_t first, std::size_t end) {
  const std::size_t even = first / 2 * 2;
  cut(access.of, even);
  bool are_alive = true;
  for (std::size_t i = first; i < std::min(end, even + 2) && are_alive; ++i) are_alive = check(access, i, 1);
  join(access.of, even);
  return are_alive;
}

/// Neighbours in one access mostly have one past; then what becomes of the first becomes of them.
class Alike {
 public:
  explicit Alike(const Access& access) : access_(access) {}
  /// A word, both of whose halves are touched.
  bool check(std::size_t first) {
    Cell& cell = access_.of.cells[first / 2];
    std::uint8_t* const states = access_.of.states + first;
    if (states[0] != states[1] || states[0] & split) return check_halves(access_, first, first + 2);
    if (known_ && states[0] == state_before_ && same(cell, before_)) {
      cell = after_;
      states[0] = states[1] = state_after_;
      m.meter.moved += moved_;
      return true;
    }
    const std::uint64_t moved = m.meter.moved;
    before_ = cell;
    state_before_ = states[0];
    known_ = emulated::check(access_, first, 2);
    after_ = cell;
    state_after_ = states[0];
    moved_ = m.meter.moved - moved;
    return known_;
  }

 private:
  const Access& access_;
  Cell before_, after_;
  std::uint64_t moved_ = 0;
  std::uint8_t state_before_ = 0, state_after_ = 0;
  bool known_ = false;
};

bool check_all(const Access& access, std::size_t bytes) {
  const std::size_t end = (access.of.byte_of(access.at) + bytes + grain - 1) / grain;
  Alike neighbours(access);
  for (std::size_t i = access.of.grain_of(access.at); i < end;) {
    const bool is_word = i % 2 == 0 && i + 1 < end;
    if (!(is_word ? neighbours.check(i) : check_halves(access, i, end))) return false;
    i = i / 2 * 2 + 2;
  }
  return true;
}

/// Products see it when who writes it has shown it once more.
void note_unshown(const void* at, std::size_t bytes) {
  const std::size_t first = m.shared.grain_of(at);
  for (std::size_t i = 0; i < (bytes + grain - 1) / grain; ++i) m.shown[first + i] = m.lane->shows;
}

}  // namespace

bool touch(const void* at, std::size_t bytes, Touch how, const void* pc) {
  if (bytes == 0 || m.idle) return true;
  if (m.lane) {
    ++m.meter.accesses;
    if (std::size_t(static_cast<const std::byte*>(at) - m.lane->stack) < stack_bytes) return true;
  }
  if (m.lane && bytes == 16 && how == Touch::read && noted<Touch::read, 16>(m, at)) return true;
  if (m.lane && bytes == 16 && how == Touch::write && noted<Touch::write, 16>(m, at)) return true;
  const bool is_shared = m.shared.holds(at);
  if (is_shared || m.device.holds(at)) {
    Shadowed& of = is_shared ? m.shared : m.device;
    // Neighbours in one grain may be two threads' bytes.
    const Stamp mine = now(m, how == Touch::atomic ? atomics : one);
    const Access access{of, at, how, pc, mine, is_shared, bytes > 1 || !m.lane};
    if (is_shared && how == Touch::write) note_unshown(at, bytes);
    return check_all(access, bytes);
  }
  if (of_host(at, how != Touch::read)) return true;
  report("device work touches memory of the host", pc);
  return false;
}

void must_be_aligned(const void* at, std::size_t bytes, const void* pc) {
  if (reinterpret_cast<std::uintptr_t>(at) % bytes != 0)
    report("an access of " + std::to_string(bytes) + " bytes is not aligned", pc);
}

}  // namespace emulated
