// What a compiler calls before loads and stores of code that it was told to watch for races: here they are
// looked at by the emulator.
#include <cstring>

#include "tests/support/gpu/quick.h"

namespace {

using emulated::Touch;

emulated::Machine* const machine = &emulated::machine();

/// Out of a thread of the device only, which has a stack of its own: the host's accesses are nobody's
/// business, those of a thread beside the one that runs a kernel too, nor is what a thread has for itself.
[[gnu::always_inline]] inline bool is_watched(const void* at) {
  const std::byte* here;
  asm("mov %%rsp, %0" : "=r"(here));  // a frame's address would cost each hook a frame
  // The host's come before there is a machine, too.
  if (!machine || std::size_t(here - machine->stacks) >= emulated::stack_bytes * emulated::most_threads)
    return false;
  return std::size_t(static_cast<const std::byte*>(at) - machine->lane->stack) >= emulated::stack_bytes;
}

[[gnu::always_inline]] inline void watch(const void* at, std::size_t bytes, Touch how, const void* pc) {
  if (is_watched(at)) emulated::touch(at, bytes, how, pc);
}

/// A function of its own, so that most accesses, which are to what a thread has for itself, save no register.
template <Touch how, std::size_t bytes>
[[gnu::noinline]] void note_numbers(const void* at, const void* pc) {
  if (emulated::noted<how, bytes>(*machine, at))
    ++machine->meter.accesses;
  else
    emulated::touch(at, bytes, how, pc);
}

/// Of 2, 4, 8 or 16 bytes.
template <Touch how, std::size_t bytes>
[[gnu::always_inline]] inline void watch_numbers(const void* at, const void* pc) {
  if (is_watched(at)) note_numbers<how, bytes>(at, pc);
}

}  // namespace

extern "C" {

void __tsan_read1(const void* at) { watch(at, 1, Touch::read, __builtin_return_address(0)); }
void __tsan_read2(const void* at) { watch_numbers<Touch::read, 2>(at, __builtin_return_address(0)); }
void __tsan_read4(const void* at) { watch_numbers<Touch::read, 4>(at, __builtin_return_address(0)); }
void __tsan_read8(const void* at) { watch_numbers<Touch::read, 8>(at, __builtin_return_address(0)); }
void __tsan_read16(const void* at) { watch_numbers<Touch::read, 16>(at, __builtin_return_address(0)); }
void __tsan_write1(const void* at) { watch(at, 1, Touch::write, __builtin_return_address(0)); }
void __tsan_write2(const void* at) { watch_numbers<Touch::write, 2>(at, __builtin_return_address(0)); }
void __tsan_write4(const void* at) { watch_numbers<Touch::write, 4>(at, __builtin_return_address(0)); }
void __tsan_write8(const void* at) { watch_numbers<Touch::write, 8>(at, __builtin_return_address(0)); }
void __tsan_write16(const void* at) { watch_numbers<Touch::write, 16>(at, __builtin_return_address(0)); }
void __tsan_unaligned_read2(const void* at) { watch(at, 2, Touch::read, __builtin_return_address(0)); }
void __tsan_unaligned_read4(const void* at) { watch(at, 4, Touch::read, __builtin_return_address(0)); }
void __tsan_unaligned_read8(const void* at) { watch(at, 8, Touch::read, __builtin_return_address(0)); }
void __tsan_unaligned_read16(const void* at) { watch(at, 16, Touch::read, __builtin_return_address(0)); }
void __tsan_unaligned_write2(const void* at) { watch(at, 2, Touch::write, __builtin_return_address(0)); }
void __tsan_unaligned_write4(const void* at) { watch(at, 4, Touch::write, __builtin_return_address(0)); }
void __tsan_unaligned_write8(const void* at) { watch(at, 8, Touch::write, __builtin_return_address(0)); }
void __tsan_unaligned_write16(const void* at) { watch(at, 16, Touch::write, __builtin_return_address(0)); }
void __tsan_read_range(const void* at, std::size_t bytes) {
  watch(at, bytes, Touch::read, __builtin_return_address(0));
}
void __tsan_write_range(const void* at, std::size_t bytes) {
  watch(at, bytes, Touch::write, __builtin_return_address(0));
}
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  watch(from, bytes, Touch::read, __builtin_return_address(0));
  watch(to, bytes, Touch::write, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  watch(from, bytes, Touch::read, __builtin_return_address(0));
  watch(to, bytes, Touch::write, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  watch(to, bytes, Touch::write, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

}  // extern "C"

// Counters of the host's own code, in the same sources.
extern "C" {

int __tsan_atomic32_load(const volatile int* at, int) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }
void __tsan_atomic32_store(volatile int* at, int value, int) {
  __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}
int __tsan_atomic32_fetch_add(volatile int* at, int by, int) {
  return __atomic_fetch_add(at, by, __ATOMIC_SEQ_CST);
}
int __tsan_atomic32_fetch_sub(volatile int* at, int by, int) {
  return __atomic_fetch_sub(at, by, __ATOMIC_SEQ_CST);
}
char __tsan_atomic8_load(const volatile char* at, int) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }

}  // extern "C"
