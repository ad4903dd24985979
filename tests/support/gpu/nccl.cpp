// A fake of NCCL between streams of one process: the n-th collective of every rank is one, and the n-th
// letter from one rank to another is the n-th that this one reads. A call that differs from the other ranks'
// is found when it is made, not hung in; what nobody answers waits, until its own rank cuts it.
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/gpu/emulated.h"
#include "tests/support/gpu/nccl_calls.h"
#include "tests/support/gpu/streams.h"

namespace {

using emulated::Collective;
using emulated::What;

struct Call {
  Collective said;
  const void* from = nullptr;
  void* to = nullptr;
  bool made = false;
};
/// One collective.
struct Meeting {
  std::vector<Call> calls;
  std::vector<emulated::Turn> turns;  // of each rank's own stream
  std::vector<char> came;             // ranks whose stream has come here
  bool done = false;
  explicit Meeting(std::size_t ranks) : calls(ranks), turns(ranks), came(ranks) {}
  bool all_came() const {
    return std::ranges::all_of(came, [](char here) { return here != 0; });
  }
};
/// One letter: what both ends said, and whether their streams have come to it.
struct Letter {
  struct End {
    void* at = nullptr;
    std::size_t bytes = 0;
    bool said = false, came = false;
    emulated::Turn turn;
  };
  End sender, reader;
  bool done = false;
};
struct Way {
  std::vector<std::shared_ptr<Letter>> letters;
  std::size_t sent = 0, read = 0;
};
struct World {
  std::size_t ranks = 0, joined = 0;
  bool broken = false;  // nobody waits for anybody any more
  bool failed = false;  // because calls did not fit, not because somebody has left
  std::vector<int> devices;
  std::map<std::size_t, std::shared_ptr<Meeting>> meetings;
  std::map<std::pair<int, int>, Way> ways;
};

std::map<std::string, std::shared_ptr<World>>& worlds() {
  static auto* it = new std::map<std::string, std::shared_ptr<World>>;
  return *it;
}

void carry_out(const Meeting& meeting) {
  const Collective& said = meeting.calls[0].said;
  std::vector<const std::byte*> parts;
  for (std::size_t rank = 0; rank < meeting.calls.size(); ++rank) {
    emulated::as_operation(meeting.turns[rank]);
    parts.push_back(static_cast<const std::byte*>(meeting.calls[rank].from));
    if (said.what != What::broadcast || int(rank) == said.root)
      emulated::touch(parts.back(), said.handed_in(meeting.calls.size()), emulated::Touch::read);
  }
  const std::vector<std::byte> all = emulated::gathered(said, parts);
  for (std::size_t rank = 0; rank < meeting.calls.size(); ++rank) {
    emulated::as_operation(meeting.turns[rank]);
    const auto share = emulated::share_of(said, rank, all);
    if (emulated::touch(meeting.calls[rank].to, share.size(), emulated::Touch::write))
      std::memcpy(meeting.calls[rank].to, share.data(), share.size());
  }
}

void carry_out(Letter& letter) {
  emulated::as_operation(letter.sender.turn);
  emulated::touch(letter.sender.at, letter.sender.bytes, emulated::Touch::read);
  emulated::as_operation(letter.reader.turn);
  if (emulated::touch(letter.reader.at, letter.reader.bytes, emulated::Touch::write))
    std::memcpy(letter.reader.at, letter.sender.at, letter.reader.bytes);
}

}  // namespace

struct ncclComm {
  std::shared_ptr<World> world;
  std::size_t rank = 0, calls = 0;
  std::shared_ptr<bool> cut = std::make_shared<bool>(false);
};

namespace {

/// A send or a receive of a group.
struct Post {
  ncclComm* comm;
  cudaStream_t stream;
  bool sends;
  int peer;
  void* at;
  std::size_t bytes;
};
emulated::Group<Post>& group() {
  thread_local emulated::Group<Post> it;
  return it;
}

ncclResult_t refuse(World& world, const std::string& what) {
  emulated::report(what);
  world.broken = world.failed = true;
  return ncclInvalidUsage;
}

ncclResult_t meet(ncclComm& comm, const Call& call, cudaStream_t stream) {
  if (call.said.rounds()) return ncclInvalidArgument;
  const auto lock = emulated::hold();
  const std::size_t turn = comm.calls++, rank = comm.rank;
  auto& meeting = comm.world->meetings[turn];
  if (!meeting) meeting = std::make_shared<Meeting>(comm.world->ranks);
  for (std::size_t other = 0; other < comm.world->ranks; ++other)
    if (const Call& theirs = meeting->calls[other]; theirs.made && theirs.said != call.said)
      return refuse(*comm.world, "collective " + std::to_string(turn) + ": rank " + std::to_string(rank) +
                                     " calls " + call.said.told() + ", rank " + std::to_string(other) +
                                     " called " + theirs.said.told());
  meeting->calls[rank] = call;
  meeting->calls[rank].made = true;
  const auto arrive = [meeting, world = comm.world, rank, cut = comm.cut] {
    meeting->came[rank] = 1;
    meeting->turns[rank] = emulated::turn();
    return meeting->all_came() || world->broken || *cut;
  };
  emulated::enqueue(
      stream,
      [meeting] {
        if (meeting->all_came() && !std::exchange(meeting->done, true)) carry_out(*meeting);
      },
      arrive);
  return ncclSuccess;
}

/// The other end may have said its part or not. Null: what both said is not of one length.
std::shared_ptr<Letter> posted(const Post& post) {
  const int me = int(post.comm->rank);
  Way& way = post.comm->world->ways[post.sends ? std::pair(me, post.peer) : std::pair(post.peer, me)];
  const std::size_t at = post.sends ? way.sent++ : way.read++;
  if (way.letters.size() <= at) way.letters.push_back(std::make_shared<Letter>());
  const std::shared_ptr<Letter> letter = way.letters[at];
  Letter::End &mine = post.sends ? letter->sender : letter->reader,
              &theirs = post.sends ? letter->reader : letter->sender;
  mine = {.at = post.at, .bytes = post.bytes, .said = true, .came = false, .turn = {}};
  if (!theirs.said || theirs.bytes == mine.bytes) return letter;
  refuse(*post.comm->world, "letter " + std::to_string(at) + ": rank " + std::to_string(me) +
                                (post.sends ? " sends " : " expects ") + std::to_string(mine.bytes) +
                                " bytes, rank " + std::to_string(post.peer) +
                                (post.sends ? " expects " : " sends ") + std::to_string(theirs.bytes));
  return nullptr;
}

/// Sends and receives of one stream travel together.
ncclResult_t send_out(const std::vector<Post>& posts) {
  const auto lock = emulated::hold();
  using Mine = std::pair<std::shared_ptr<Letter>, bool>;
  std::vector<Mine> letters;
  for (const Post& post : posts) {
    auto letter = posted(post);
    if (!letter) return ncclInvalidUsage;
    letters.emplace_back(std::move(letter), post.sends);
  }
  const ncclComm& comm = *posts.front().comm;
  const auto whole = [](const Mine& one) { return one.first->sender.came && one.first->reader.came; };
  const auto arrive = [letters, whole, world = comm.world, cut = comm.cut] {
    for (const auto& [letter, sends] : letters) {
      Letter::End& mine = sends ? letter->sender : letter->reader;
      mine.came = true;
      mine.turn = emulated::turn();
    }
    return std::ranges::all_of(letters, whole) || world->broken || *cut;
  };
  emulated::enqueue(
      posts.front().stream,
      [letters, whole] {
        for (const Mine& one : letters)
          if (whole(one) && !std::exchange(one.first->done, true)) carry_out(*one.first);
      },
      arrive);
  return ncclSuccess;
}

ncclResult_t post(const Post& post) {
  if (post.peer < 0 || std::size_t(post.peer) >= post.comm->world->ranks) return ncclInvalidArgument;
  return group().take(post, send_out);
}

/// Waits until all have joined. Two ranks of one GPU are refused.
ncclResult_t assemble(const std::shared_ptr<World>& world, std::unique_lock<std::recursive_mutex>& lock) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(emulated::runtime().patience);
  emulated::runtime().news.notify_all();
  while (world->joined < world->ranks)
    if (emulated::runtime().news.wait_until(lock, until) == std::cv_status::timeout) return ncclSystemError;
  std::vector<int> devices = world->devices;
  std::ranges::sort(devices);
  return std::ranges::adjacent_find(devices) == devices.end() ? ncclSuccess : ncclInvalidUsage;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = 22800;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const auto lock = emulated::hold();
  static unsigned long long last = 0;
  *id = {};
  ++last;
  std::memcpy(id->internal, &last, sizeof last);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (rank < 0 || rank >= ranks) return ncclInvalidArgument;
  auto lock = emulated::hold();
  auto& world = worlds()[std::string(id.internal, sizeof id.internal)];
  if (!world) {
    world = std::make_shared<World>();
    world->ranks = std::size_t(ranks);
  }
  if (world->ranks != std::size_t(ranks)) return ncclInvalidArgument;
  ++world->joined;
  world->devices.push_back(emulated::chosen_device());
  const ncclResult_t result = assemble(world, lock);
  if (result == ncclSuccess) *comm = new ncclComm{world, std::size_t(rank)};
  return result;
}
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ranks, const int*) {
  const auto world = std::make_shared<World>();
  world->ranks = std::size_t(ranks);
  for (int i = 0; i < ranks; ++i) comms[i] = new ncclComm{world, std::size_t(i)};
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const auto lock = emulated::hold();
  comm->world->broken = true;  // what waits for others of it waits no longer
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const auto lock = emulated::hold();
  *comm->cut = true;  // and others still wait for this one
  emulated::runtime().news.notify_all();
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const auto lock = emulated::hold();
  *error = comm->world->failed ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclInvalidUsage ? "invalid usage" : result == ncclRemoteError ? "remote error" : "other";
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return meet(*comm, {{What::all_reduce, count, type, op, 0}, from, to}, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return meet(*comm, {{What::reduce_scatter, count, type, op, 0}, from, to}, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return meet(*comm, {{What::all_gather, count, type, 0, 0}, from, to}, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return meet(*comm, {{What::broadcast, count, type, 0, root}, from, to}, stream);
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return post({comm, stream, true, peer, const_cast<void*>(from), count * emulated::size_of(type)});
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return post({comm, stream, false, peer, to, count * emulated::size_of(type)});
}
ncclResult_t ncclGroupStart() {
  group().begin();
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() { return group().end(send_out); }

}  // extern "C"
