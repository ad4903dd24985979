// Memory of the fake device, in stream order and not, pinned pages, and copies between them.
#include <cstdlib>
#include <cstring>

#include "tests/support/gpu/streams.h"

using emulated::runtime;
using emulated::stream_of;
using emulated::Touch;

extern "C" {

// Room that is not alive: who cuts it into blocks says when each begins to live (gpu_notes.h).
cudaError_t cudaMalloc(void** at, std::size_t bytes) {
  const auto lock = emulated::hold();
  *at = emulated::find_room(bytes);
  if (!*at) return cudaErrorMemoryAllocation;
  runtime().blocks[*at] = {bytes, nullptr, emulated::chosen_device()};
  return cudaSuccess;
}
cudaError_t cudaFree(void* at) {
  cudaDeviceSynchronize();
  const auto lock = emulated::hold();
  if (at == nullptr) return cudaSuccess;
  const auto it = runtime().blocks.find(at);
  if (it == runtime().blocks.end()) {
    emulated::report("memory is freed that is not allocated");
    return cudaErrorInvalidValue;
  }
  emulated::drop_room(at, it->second.bytes);
  runtime().blocks.erase(it);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** at, std::size_t bytes, cudaStream_t to) {
  const auto lock = emulated::hold();
  CUstream_st& stream = stream_of(to);
  *at = nullptr;
  // What was freed on this stream is taken again at once: nobody else may still use it.
  for (auto& [block, is] : runtime().blocks)
    if (is.freed_on == &stream && is.bytes == bytes) *at = block, is.freed_on = nullptr;
  if (!*at) *at = emulated::find_room(bytes);
  if (!*at) return cudaErrorMemoryAllocation;
  runtime().blocks[*at] = {bytes, nullptr, stream.device};
  emulated::give(stream, [block = *at, bytes] {
    emulated::touch(block, bytes, Touch::allocate);
    emulated::spoil(block, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* at, cudaStream_t from) {
  const auto lock = emulated::hold();
  const auto it = runtime().blocks.find(at);
  if (it == runtime().blocks.end() || it->second.freed_on) {
    emulated::report("memory is freed that is not allocated");
    return cudaErrorInvalidValue;
  }
  it->second.freed_on = &stream_of(from);
  emulated::give(stream_of(from), [at, bytes = it->second.bytes] {
    emulated::touch(at, bytes, Touch::release);
    emulated::spoil(at, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** at, std::size_t bytes) {
  const auto lock = emulated::hold();
  *at = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  emulated::let_in(*at, bytes, true);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* at) {
  cudaDeviceSynchronize();
  const auto lock = emulated::hold();
  emulated::let_in(at, 0, false);
  std::free(at);
  return cudaSuccess;
}

// Memory of the host that is not pinned is read before the call returns, and is written before it returns.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t on) {
  auto lock = emulated::hold();
  emulated::count_asked(on);
  std::shared_ptr<std::vector<std::byte>> staged;
  if (!emulated::on_device(from) && !emulated::pinned(from)) {
    const auto* first = static_cast<const std::byte*>(from);
    staged = std::make_shared<std::vector<std::byte>>(first, first + bytes);
  }
  // Who waits for ranks that do not come goes on without the copy, and its memory is its own again.
  const auto over = std::make_shared<bool>(false);
  emulated::give(stream_of(on), [=] {
    if (*over) return;
    if (emulated::on_device(from) && !emulated::touch(from, bytes, Touch::read)) return;
    if (emulated::on_device(to) && !emulated::touch(to, bytes, Touch::write)) return;
    if (bytes > 0) std::memmove(to, staged ? staged->data() : from, bytes);
  });
  if (!emulated::on_device(to) && !emulated::pinned(to)) {
    emulated::meter().host_waits += stream_of(on).done < stream_of(on).given;
    emulated::wait_for(stream_of(on), lock);
    *over = true;
  }
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t on) {
  const auto lock = emulated::hold();
  emulated::count_asked(on);
  emulated::give(stream_of(on), [=] {
    if (emulated::touch(at, bytes, Touch::write)) std::memset(at, value, bytes);
  });
  return cudaSuccess;
}

}  // extern "C"
