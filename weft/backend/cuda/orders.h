// What was asked of a stream, kept as a list: launches with the bytes of their arguments, and calls that ask
// a stream by themselves, such as those of libraries.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include "weft/backend/cuda/launch.h"

namespace weft::cuda {

/// One thing that was asked for. What it is, is `what` and `kind`; the rest may differ from time to time.
struct Order {
  const void* what;  // the kernel; or whose call it is
  const void* kind;  // of calls that do different things with a stream: which; else null
  gpu::Shape shape;  // of a launch
  std::size_t at, bytes;
  const std::size_t* sizes = nullptr;  // of a launch's arguments
  int count = 0;
  void (*call)(const void*, cudaStream_t) = nullptr;  // null: a launch

  bool same_kind(const Order& other) const { return what == other.what && kind == other.kind; }
};

class Orders {
 public:
  void add(const gpu::Launch& launch);
  /// f(stream) at its turn. All that it does follows from its kind and from its bytes.
  template <class F>
  void add(const void* kind, const F& f) {
    static_assert(std::is_trivially_copyable_v<F>);
    const auto call = [](const void* it, cudaStream_t stream) { (*static_cast<const F*>(it))(stream); };
    add_call({reinterpret_cast<const void*>(+call), kind, {}, 0, sizeof(F), nullptr, 0, call}, &f);
  }
  void clear();

  std::size_t size() const { return all_.size(); }
  const Order& operator[](std::size_t i) const { return all_[i]; }
  /// Asks a stream for the i-th.
  void play(std::size_t i, cudaStream_t stream) const;
  /// Calls f(launch) with the i-th, which is one.
  template <class F>
  void with_launch(std::size_t i, const F& f) const {
    const Order& it = all_[i];
    void* arguments[most_arguments];
    point(it, arguments);
    f(gpu::Launch{it.what, it.shape, arguments, it.sizes, it.count});
  }

  /// Of what all of them are, in their order.
  std::size_t hash_of_kinds() const;
  bool same_kinds(const Orders& other) const;
  /// Whether the i-th of both, which are of one kind, are the same thing: byte for byte, so that what lies
  /// between members may part what is the same.
  bool same(std::size_t i, const Orders& other) const;

 private:
  static constexpr int most_arguments = 16;
  void add_call(Order order, const void* bytes);
  std::size_t put(const void* bytes, std::size_t count);
  void point(const Order& order, void** arguments) const;

  std::vector<Order> all_;
  std::vector<std::byte> bytes_;
};

}  // namespace weft::cuda
