// What is said by NCCL's collectives, and what comes of it: the same for ranks of one process (nccl.cpp) and
// for processes (nccl_folder.cpp).
#pragma once

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace emulated {

enum class What { all_reduce, reduce_scatter, all_gather, broadcast };

inline const char* name(What what) {
  constexpr const char* names[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast"};
  return names[int(what)];
}

inline std::size_t size_of(int type) {
  return type == ncclUint8 ? 1 : type == ncclInt64 || type == ncclFloat64 ? 8 : type == ncclBfloat16 ? 2 : 4;
}

/// What ranks must say alike.
struct Collective {
  What what{};
  std::size_t count = 0;  // that the caller names
  int type = 0, op = 0, root = 0;
  bool operator==(const Collective&) const = default;

  bool reduces() const { return what == What::all_reduce || what == What::reduce_scatter; }
  /// NCCL adds them, but rounds at every rank, so the house never asks for it.
  bool rounds() const { return reduces() && type == ncclBfloat16; }
  std::size_t bytes() const { return count * size_of(type); }
  /// Bytes that each of so many ranks hands in.
  std::size_t handed_in(std::size_t ranks) const {
    return bytes() * (what == What::reduce_scatter ? ranks : 1);
  }
  std::string told() const {
    return std::string(name(what)) + " of " + std::to_string(count) + " elements of type " +
           std::to_string(type);
  }
};

template <class T>
void join(std::byte* sum, const std::byte* part, std::size_t count, int op) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, sum + i * sizeof(T), sizeof(T));
    std::memcpy(&b, part + i * sizeof(T), sizeof(T));
    const T out = op == ncclMax ? std::max(a, b) : T(a + b);
    std::memcpy(sum + i * sizeof(T), &out, sizeof(T));
  }
}

inline void join(int type, std::byte* sum, const std::byte* part, std::size_t count, int op) {
  switch (type) {
    case ncclUint8:
      return join<unsigned char>(sum, part, count, op);
    case ncclInt32:
      return join<std::int32_t>(sum, part, count, op);
    case ncclInt64:
      return join<std::int64_t>(sum, part, count, op);
    case ncclFloat64:
      return join<double>(sum, part, count, op);
    default:
      return join<float>(sum, part, count, op);
  }
}

/// What all ranks have handed in, one behind the other or reduced in order of ranks.
inline std::vector<std::byte> gathered(const Collective& said, std::span<const std::byte* const> parts) {
  const std::size_t bytes = said.handed_in(parts.size());
  std::vector<std::byte> all;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (said.what == What::broadcast && int(rank) != said.root) continue;
    if (!said.reduces() || all.empty())
      all.insert(all.end(), parts[rank], parts[rank] + bytes);
    else
      join(said.type, all.data(), parts[rank], bytes / size_of(said.type), said.op);
  }
  return all;
}

/// What a rank gets of it.
inline std::span<const std::byte> share_of(const Collective& said, std::size_t rank,
                                           std::span<const std::byte> all) {
  return said.what == What::reduce_scatter ? all.subspan(rank * said.bytes(), said.bytes()) : all;
}

/// Letters of a thread that travel together.
template <class Post>
class Group {
 public:
  void begin() { ++depth_; }
  /// Sends it at once, or with the others of the group.
  template <class SendOut>
  ncclResult_t take(const Post& post, const SendOut& send_out) {
    if (depth_ == 0) return send_out({post});
    posts_.push_back(post);
    return ncclSuccess;
  }
  template <class SendOut>
  ncclResult_t end(const SendOut& send_out) {
    if (depth_ == 0) return ncclInvalidUsage;
    if (--depth_ > 0 || posts_.empty()) return ncclSuccess;
    return send_out(std::exchange(posts_, {}));
  }

 private:
  int depth_ = 0;
  std::vector<Post> posts_;
};

}  // namespace emulated
