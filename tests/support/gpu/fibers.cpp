// The threads of a block as fibers: they run one after another, and change places where they meet.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "tests/support/gpu/machine.h"

extern "C" void emulated_switch(void** save, void* to);
asm(R"(
.text
.globl emulated_switch
.type emulated_switch, @function
emulated_switch:
  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
  ret
.size emulated_switch, .-emulated_switch
)");

namespace emulated {
namespace {

Machine& m = machine();

/// The next thread that may runs on; none: whoever runs the block.
void suspend() {
  ++m.meter.switches;
  Lane& me = *m.lane;
  m.may_run.erase(me.turn);
  const unsigned next = m.may_run.after(me.turn);
  if (next == most_threads) return emulated_switch(&me.sp, m.scheduler);
  m.lane = &m.lanes[m.turns[next]];
  emulated_switch(&me.sp, m.lane->sp);
}

void release_barrier() {
  if (m.has_products) compare_warpgroups();
  m.arrived = 0;
  ++m.barriers;
  ++m.moment;
  for (std::size_t i = 0; i < m.may_run.words.size(); ++i)
    m.may_run.words[i] |= std::exchange(m.at_barrier.words[i], 0);
}

[[noreturn]] void run_lane() {
  m.kernel(m.arguments);
  for (;;) {
    m.lane->state = Lane::ended;
    if (--m.living > 0 && m.arrived == m.living) release_barrier();
    suspend();
  }
}

void start(Lane& lane, unsigned id, unsigned turn) {
  lane.id = id;
  lane.turn = std::uint16_t(turn);
  lane.state = Lane::ready;
  lane.warp_barrier = lane.shows = 0;
  m.may_run.insert(turn);
  lane.stack = m.stacks + id * stack_bytes;
  // What emulated_switch pops: six registers and where to go; the stack is as after a call.
  auto* top = reinterpret_cast<void**>(lane.stack + stack_bytes - 64);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&run_lane);
  lane.sp = top - 6;
}

void say_who_waits() {
  std::map<std::string, int> waits;
  for (unsigned i = 0; i < m.size.x; ++i) {
    const Lane& lane = m.lanes[i];
    const std::string with = lane.mask == 0 ? "" : " of mask " + std::to_string(lane.mask);
    const std::string where =
        "wait at " + std::string(lane.place.what ? lane.place.what : "?") + with + " in line ";
    ++waits[lane.state == Lane::ended ? "have ended" : where + std::to_string(lane.place.line)];
  }
  std::string out = "the block is stuck:";
  for (const auto& [what, count] : waits) out += " " + std::to_string(count) + " threads " + what + ";";
  report(out);
}

std::vector<unsigned> order_of(unsigned count, unsigned salt) {
  std::vector<unsigned> out(count);
  std::iota(out.begin(), out.end(), 0U);
  if (m.order == 1) std::reverse(out.begin(), out.end());
  if (m.order > 1) std::shuffle(out.begin(), out.end(), std::mt19937(m.order + salt));
  return out;
}

void forget_held() {
  for (unsigned i = 0; i < m.holders; ++i) {
    m.held[i].copies.resize(1);
    m.held[i].copies[0].clear();
    m.held[i].shown.clear();
  }
  m.holders = 0;
}

void run_block() {
  // Who touched it before is told apart by the block.
  std::memset(m.shared.states, alive, (m.shared_size + grain - 1) / grain);
  m.meeting.fill(0);
  if (std::exchange(m.has_products, false)) m.warps.fill({});
  forget_held();
  m.block_began = ++m.moment;
  m.blocks_began.push_back(m.moment);
  m.barriers = 0;
  m.arrived = 0;
  m.may_run = m.at_barrier = {};
  m.living = m.size.x;
  for (unsigned turn = 0; turn < m.size.x; ++turn) start(m.lanes[m.turns[turn]], m.turns[turn], turn);
  m.meter.threads += m.size.x;
  m.lane = &m.lanes[m.turns[0]];
  emulated_switch(&m.scheduler, m.lane->sp);
  if (m.living > 0) return say_who_waits();
  if (m.has_products) look_for_products_under_way();
}

/// Whether this lane waits where me waits.
bool meets(const Lane& other, const Lane& me) {
  return other.state == Lane::waiting && other.mask == me.mask && other.place.line == me.place.line &&
         (other.place.what == me.place.what || std::strcmp(other.place.what, me.place.what) == 0);
}

}  // namespace

unsigned Turns::after(unsigned turn) const {
  constexpr unsigned count = most_threads / 64;
  const unsigned first = (turn + 1) / 64 % count;
  const std::uint64_t behind = ~std::uint64_t(0) << (turn + 1) % 64;
  if (const std::uint64_t here = words[first] & behind) return first * 64 + unsigned(std::countr_zero(here));
  for (unsigned i = 1; i <= count; ++i) {
    const unsigned at = (first + i) % count;
    if (words[at]) return at * 64 + unsigned(std::countr_zero(words[at]));
  }
  return most_threads;
}

namespace {

/// False where some lane of the mask waits elsewhere. A function of its own, so that stacks of those who only
/// wait are short.
[[gnu::noinline]] bool combined(Lane* warp, unsigned mask, Combine combine) {
  const Lane& me = *m.lane;
  Handed all;
  all.mask = mask;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1U)) continue;
    if (!meets(warp[i], me)) return false;
    all.in[i] = warp[i].in;
    all.out[i] = warp[i].out;
  }
  combine(all);
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1U)) continue;
    warp[i].state = Lane::ready;
    m.may_run.insert(warp[i].turn);
  }
  return true;
}

}  // namespace

Held& now_held() {
  m.holders = std::max(m.holders, m.lane->id + 1);
  return m.held[m.lane->id];
}

unsigned thread_number() { return m.lane->id; }
unsigned block_number() { return m.index.x; }
unsigned block_size() { return m.size.x; }
unsigned grid_size() { return m.grid.x; }
void* shared_memory() { return m.shared.base; }

void barrier(int line) {
  Lane& me = *m.lane;
  me.place = {"__syncthreads", line};
  me.mask = 0;
  me.state = Lane::waiting;
  if (m.arrived == 0) m.barrier_line = line;
  if (m.barrier_line != line)
    report("threads meet at different barriers, of lines " + std::to_string(m.barrier_line) + " and " +
           std::to_string(line));
  if (++m.arrived < m.living) {
    m.at_barrier.insert(me.turn);
    suspend();
  } else {
    release_barrier();
  }
  me.state = Lane::ready;
}

void meet(unsigned mask, Place place, const void* in, void* out, Combine combine) {
  Lane& me = *m.lane;
  if (!(mask >> (me.id % 32) & 1U)) {
    report(std::string(place.what) + " in line " + std::to_string(place.line) +
           " is called by a lane that its mask leaves out");
    mask |= 1U << (me.id % 32);
  }
  me.place = place;
  me.mask = mask;
  me.in = in;
  me.out = out;
  me.state = Lane::waiting;
  const unsigned first = me.id / 32 * 32;
  unsigned& meeting = m.meeting[first / 32];
  meeting |= 1U << (me.id % 32);
  if ((meeting & mask) != mask) return suspend();
  if (!combined(&m.lanes[first], mask, combine)) return suspend();
  meeting &= ~mask;
}

void order_warp() {
  Lane* warp = &m.lanes[m.lane->id / 32 * 32];
  for (int i = 0; i < 32; ++i) ++warp[i].warp_barrier;
}

void run_grid(const Grid& grid, void (*kernel)(const void*), const void* arguments) {
  ++m.meter.launches;
  if (m.idle) return;
  m.kernel = kernel;
  m.arguments = arguments;
  m.size = grid.threads;
  m.grid = grid.blocks;
  m.shared_size = grid.shared;
  std::memset(m.shared.states, 0, m.shared.bytes / grain);
  m.turns = order_of(m.size.x, 0);
  m.block_turns = order_of(m.grid.x, 1);
  m.blocks_began.clear();
  for (const unsigned i : m.block_turns) {
    m.index = {i, 0, 0};
    run_block();
  }
  m.lane = nullptr;
  m.block_began = ++m.moment;
}

}  // namespace emulated
