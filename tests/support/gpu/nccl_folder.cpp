// Words of NCCL as files. The n-th collective of a rank is a file of what it said and handed in; who sees
// those of all ranks knows that they have done the one before. A letter is a file that its reader takes away.
#include "tests/support/gpu/nccl_folder.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/gpu/emulated.h"
#include "tests/support/gpu/nccl_calls.h"
#include "tests/support/gpu/streams.h"

namespace emulated {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

fs::path& folder() {
  static auto* it = new fs::path;
  return *it;
}

void put(const fs::path& at, std::span<const std::byte> head, std::span<const std::byte> rest) {
  const fs::path unfinished = at.string() + ".unfinished";
  std::ofstream file(unfinished, std::ios::binary);
  for (const auto part : {head, rest})
    file.write(reinterpret_cast<const char*>(part.data()), std::streamsize(part.size()));
  file.close();
  fs::rename(unfinished, at);
}

Bytes get(const fs::path& at) {
  std::ifstream file(at, std::ios::binary);
  Bytes out(fs::file_size(at));
  file.read(reinterpret_cast<char*>(out.data()), std::streamsize(out.size()));
  return out;
}

/// A communicator of one rank.
struct Circle {
  fs::path at;
  int rank = 0, ranks = 0;
  std::size_t calls = 0;
  std::map<int, std::size_t> sent, read;
  bool cut = false, failed = false;

  fs::path collective(std::size_t number, int of) const {
    return at / ("collective." + std::to_string(number) + "." + std::to_string(of));
  }
  fs::path letter(int from, int to, std::size_t number) const {
    return at / ("letter." + std::to_string(from) + "." + std::to_string(to) + "." + std::to_string(number));
  }
  fs::path joined(int of) const { return at / ("joined." + std::to_string(of)); }
  void refuse(const std::string& what) {
    report(what);
    failed = true;
  }
};
struct Handle {
  std::shared_ptr<Circle> circle;
};
Circle& of(ncclComm_t comm) { return *reinterpret_cast<Handle*>(comm)->circle; }
std::shared_ptr<Circle> shared(ncclComm_t comm) { return reinterpret_cast<Handle*>(comm)->circle; }

/// A collective on its way through this rank's stream.
struct Meeting {
  std::shared_ptr<Circle> circle;
  Collective said;
  std::size_t number;
  const void* from;
  void* to;
  bool handed_in = false;

  /// Hands in what this rank has, and looks who else has.
  bool ready() {
    if (!std::exchange(handed_in, true)) {
      const bool asked = said.what != What::broadcast || circle->rank == said.root;
      const std::size_t bytes = asked ? said.handed_in(std::size_t(circle->ranks)) : 0;
      if (asked) touch(from, bytes, Touch::read);
      put(circle->collective(number, circle->rank), std::as_bytes(std::span(&said, 1)),
          {static_cast<const std::byte*>(from), bytes});
    }
    for (int rank = 0; rank < circle->ranks; ++rank)
      if (!fs::exists(circle->collective(number, rank))) return circle->cut;
    return true;
  }

  void carry_out() const {
    if (circle->cut) return;
    std::vector<Bytes> files;
    std::vector<const std::byte*> parts;
    for (int rank = 0; rank < circle->ranks; ++rank) {
      files.push_back(get(circle->collective(number, rank)));
      Collective theirs;
      std::memcpy(&theirs, files.back().data(), sizeof theirs);
      if (theirs != said)
        return circle->refuse("collective " + std::to_string(number) + ": rank " +
                              std::to_string(circle->rank) + " calls " + said.told() + ", rank " +
                              std::to_string(rank) + " called " + theirs.told());
      parts.push_back(files.back().data() + sizeof theirs);
    }
    const Bytes all = gathered(said, parts);
    const auto share = share_of(said, std::size_t(circle->rank), all);
    if (touch(to, share.size(), Touch::write)) std::memcpy(to, share.data(), share.size());
    if (number > 0) fs::remove(circle->collective(number - 1, circle->rank));  // all have come past it
  }
};

ncclResult_t meet(ncclComm_t comm, const Collective& said, const void* from, void* to, cudaStream_t stream) {
  if (said.rounds()) return ncclInvalidArgument;
  const auto lock = hold();
  const auto meeting = std::make_shared<Meeting>(Meeting{shared(comm), said, of(comm).calls++, from, to});
  enqueue(
      stream, [meeting] { meeting->carry_out(); }, [meeting] { return meeting->ready(); });
  return ncclSuccess;
}

struct Post {
  std::shared_ptr<Circle> circle;
  cudaStream_t stream;
  bool sends;
  void* at;
  std::size_t bytes;
  fs::path letter;
};
Group<Post>& group() {
  thread_local Group<Post> it;
  return it;
}

/// Letters of one stream that travel together: the first time those that leave are written.
bool letters_are_there(const std::vector<Post>& posts, bool first) {
  bool all = true;
  for (const Post& post : posts) {
    if (post.sends && first) {
      touch(post.at, post.bytes, Touch::read);
      put(post.letter, {}, {static_cast<const std::byte*>(post.at), post.bytes});
    }
    all = all && (post.sends || fs::exists(post.letter));
  }
  return all || posts.front().circle->cut;
}

void take(const Post& post) {
  const Bytes came = get(post.letter);
  fs::remove(post.letter);
  if (came.size() != post.bytes)
    return post.circle->refuse("a letter of " + std::to_string(came.size()) + " bytes, expected " +
                               std::to_string(post.bytes));
  if (touch(post.at, post.bytes, Touch::write)) std::memcpy(post.at, came.data(), came.size());
}

ncclResult_t send_out(const std::vector<Post>& posts) {
  const auto lock = hold();
  const auto first = std::make_shared<bool>(true);
  enqueue(
      posts.front().stream,
      [posts] {
        for (const Post& post : posts)
          if (!post.sends && !post.circle->cut) take(post);
      },
      [posts, first] { return letters_are_there(posts, std::exchange(*first, false)); });
  return ncclSuccess;
}

ncclResult_t post(const Post& post) { return group().take(post, send_out); }

ncclResult_t fresh_id(ncclUniqueId* id) {
  const auto lock = hold();
  static unsigned long long last = 0;
  *id = {};
  const std::string name = std::to_string(getpid()) + "." + std::to_string(++last);
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

// Waits until all have joined. Two ranks of one GPU are refused.
ncclResult_t open(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (rank < 0 || rank >= ranks) return ncclInvalidArgument;
  auto lock = hold();
  Circle circle;
  circle.at = folder() / std::string(id.internal);
  circle.rank = rank;
  circle.ranks = ranks;
  fs::create_directories(circle.at);
  const int mine = chosen_device();
  put(circle.joined(rank), std::as_bytes(std::span(&mine, 1)), {});
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(runtime().patience);
  for (int other = 0; other < ranks; ++other) {
    while (!fs::exists(circle.joined(other))) {
      if (std::chrono::steady_clock::now() > until) return ncclSystemError;
      runtime().news.wait_for(lock, std::chrono::milliseconds(1));
    }
    if (other != rank && get(circle.joined(other)) == get(circle.joined(rank))) return ncclInvalidUsage;
  }
  *comm = reinterpret_cast<ncclComm_t>(new Handle{std::make_shared<Circle>(circle)});
  return ncclSuccess;
}

ncclResult_t close(ncclComm_t comm) {
  delete reinterpret_cast<Handle*>(comm);
  return ncclSuccess;
}

ncclResult_t cut(ncclComm_t comm) {
  const auto lock = hold();
  of(comm).cut = true;
  runtime().news.notify_all();
  return close(comm);
}

ncclResult_t failure(ncclComm_t comm, ncclResult_t* error) {
  const auto lock = hold();
  *error = of(comm).failed ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t nccl_all_reduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                             ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return meet(comm, {What::all_reduce, count, type, op, 0}, from, to, stream);
}
ncclResult_t nccl_reduce_scatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                                 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return meet(comm, {What::reduce_scatter, count, type, op, 0}, from, to, stream);
}
ncclResult_t nccl_all_gather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                             ncclComm_t comm, cudaStream_t stream) {
  return meet(comm, {What::all_gather, count, type, 0, 0}, from, to, stream);
}
ncclResult_t nccl_broadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                            ncclComm_t comm, cudaStream_t stream) {
  return meet(comm, {What::broadcast, count, type, 0, root}, from, to, stream);
}
ncclResult_t nccl_send(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  const auto lock = hold();
  Circle& circle = of(comm);
  return post({shared(comm), stream, true, const_cast<void*>(from), count * size_of(type),
               circle.letter(circle.rank, peer, circle.sent[peer]++)});
}
ncclResult_t nccl_recv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  const auto lock = hold();
  Circle& circle = of(comm);
  return post({shared(comm), stream, false, to, count * size_of(type),
               circle.letter(peer, circle.rank, circle.read[peer]++)});
}
ncclResult_t begin_group() {
  group().begin();
  return ncclSuccess;
}
ncclResult_t end_group() { return group().end(send_out); }

}  // namespace

void share_nccl(const fs::path& where) {
  folder() = where;
  runtime().others = true;
}

bool shares_nccl() { return !folder().empty(); }

weft::cuda::NcclLibrary nccl_of_folder() {
  return {.version = ncclGetVersion,
          .fresh_id = fresh_id,
          .open = open,
          .close = close,
          .cut = cut,
          .failure = failure,
          .told = ncclGetErrorString,
          .all_reduce = nccl_all_reduce,
          .reduce_scatter = nccl_reduce_scatter,
          .all_gather = nccl_all_gather,
          .broadcast = nccl_broadcast,
          .send = nccl_send,
          .recv = nccl_recv,
          .begin_group = begin_group,
          .end_group = end_group};
}

void go_on() {
  const auto lock = hold();
  for (std::size_t i = 0; i < runtime().streams.size(); ++i)
    while (advance(*runtime().streams[i])) continue;
}

}  // namespace emulated
