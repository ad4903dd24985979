// A GPU on a processor: fibers, shadow memory and the order of streams, as gpu.h and the fake libraries see
// them.
//
// A kernel is compiled with -fsanitize=thread but linked without it: the calls that the compiler then inserts
// before every load and store (__tsan_read4, …) end in watch.cpp, which checks them against a shadow of the
// device's and the block's shared memory. One lock is held while work runs, so that ranks may be threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace emulated {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

// ---- what was found
// ---------------------------------------------------------------------------------------
/// Adds a sentence to the findings, once for every place; pc is resolved to a line of the source.
void report(const std::string& what, const void* pc = nullptr);
/// The findings so far, taken away. A test asks that there be none.
std::vector<std::string> take_reports();

struct Meter {
  std::uint64_t threads = 0, accesses = 0, switches = 0, bank_conflicts = 0, launches = 0, multiplies = 0;
  std::uint64_t products = 0;    // of warpgroups, a warp
  std::uint64_t asked = 0;       // calls that gave a stream something to do, or changed what a graph does
  std::uint64_t host_waits = 0;  // for what the device had not done yet
  bool profiled = false;         // a profiler looks
  std::uint64_t windows = 0;     // how often it began to
  std::uint64_t in_windows = 0;  // launches meanwhile
  std::uint64_t moved = 0;       // bytes of device memory, once for each operation that reads or writes them
};
Meter& meter();
/// What a profiler would have shown as names, each behind those that it lies in, taken away.
std::vector<std::string> take_names();

// ---- the threads of a block
// -------------------------------------------------------------------------------
// For as long as a thread lives these are what they are.
[[gnu::const]] unsigned thread_number();
[[gnu::const]] unsigned block_number();
[[gnu::const]] unsigned block_size();
[[gnu::const]] unsigned grid_size();
[[gnu::const]] void* shared_memory();
/// All threads of the block meet; those that have ended are not waited for.
void barrier(int line);
/// The lanes of mask meet, and the last one combines what all handed in. Pointers are into the lanes' stacks.
struct Handed {
  const void* in[32];
  void* out[32];
  unsigned mask;
};
using Combine = void (*)(const Handed&);
struct Place {  // of a meeting, for messages
  const char* what;
  int line;
};
void meet(unsigned mask, Place place, const void* in, void* out, Combine combine);
void order_warp();  // within combine: what these lanes did before is now ordered
void copy_async(void* to, const void* from, bool wanted);
void commit_copies();
void wait_copies(int groups_left);
struct Grid {
  Dim blocks, threads;
  std::size_t shared = 0;
};
/// The cudaError_t of a launch that this GPU does not take: checked when it is asked for, as a GPU does.
int launch_error(void* stream, const Grid& grid);
/// The first number of the compute capability of the machine's GPUs.
int capability();
std::size_t version_of_products();
/// A kernel with its arguments; and how one is made, of a kernel and of where they lie (gpu.h).
using Bound = std::function<void(const Grid&)>;
using Bind = Bound (*)(const void* kernel, void** arguments);
void know(const void* kernel, Bind bind);
/// Empty where nobody knows the kernel.
Bound bound(const void* kernel, void** arguments);
void run_grid(const Grid& grid, void (*kernel)(const void*), const void* arguments);
/// For as long as one lives kernels and products do nothing, nobody watches, and memory that is lent holds
/// zeros: for tests of what is asked for, waited for and held, which nothing that is computed decides.
class Idle {
 public:
  Idle();
  ~Idle();
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
};
bool idle();
/// Of memory that nobody has written: no number in any float.
void spoil(void* at, std::size_t bytes);
/// Order in which blocks and lanes run: 0 ascending, 1 descending, else shuffled with this seed.
void set_order(unsigned order);

// ---- memory
// -----------------------------------------------------------------------------------------------
enum class Touch { read, write, allocate, release, atomic };
/// By a kernel's thread, or by an operation that is none. False: not the device's memory, or not alive.
bool touch(const void* at, std::size_t bytes, Touch how, const void* pc = nullptr);
void must_be_aligned(const void* at, std::size_t bytes, const void* pc);
/// Room of the device, with a gap on either side. Not alive before an operation touches it with allocate.
void* find_room(std::size_t bytes);
void drop_room(void* at, std::size_t bytes);
bool on_device(const void* at);
/// Memory of the host that kernels may read and write.
void let_in(const void* at, std::size_t bytes, bool in);
bool pinned(const void* at);

// ---- order: every operation knows how far each stream is known to have got
using Clock = std::vector<std::uint32_t>;
void join(Clock& into, const Clock& other);
/// A new operation, the position-th of a stream; returns its number.
std::uint32_t number(std::uint32_t stream, std::uint32_t position);
/// What touch() and run_grid() do is done by this operation.
struct Turn {
  std::uint32_t number = 0;
  Clock clock;
};
void as_operation(const Turn& turn);
Turn turn();
std::unique_lock<std::recursive_mutex> hold();

/// For Meter::asked: the host has work for the stream, not for a graph that is captured.
void count_asked(void* stream);
/// Work for a stream: run later, in any legal order (streams.cpp).
void enqueue(void* stream, std::function<void()> act, std::function<bool()> ready = {});

}  // namespace emulated
