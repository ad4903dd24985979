// A fake of NCCL between streams of one process: the n-th call of every rank is one collective. A call that
// differs from the other ranks' is found when it is made, not hung in.
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gpu/emulated.h"

namespace {

struct Call {
  const char* what;
  std::size_t count;
  int type, op;
  const void* from = nullptr;
  void* to = nullptr;
  bool operator==(const Call& o) const {
    return std::strcmp(what, o.what) == 0 && count == o.count && type == o.type && op == o.op;
  }
  std::string told() const {
    return std::string(what) + " of " + std::to_string(count) + " elements of type " + std::to_string(type);
  }
};
struct Meeting {
  std::vector<Call> calls;
  std::vector<emulated::Turn> turns;  // of each rank's own stream
  std::size_t ready = 0;              // ranks whose stream has come here
  bool done = false;
  explicit Meeting(std::size_t ranks) : calls(ranks, Call{nullptr, 0, 0, 0}), turns(ranks) {}
};
struct World {
  bool broken = false;
  std::size_t ranks;
  std::map<std::size_t, std::shared_ptr<Meeting>> meetings;
};

float combined(float a, float b, int op) { return op == ncclMax ? std::max(a, b) : a + b; }

/// In order of ranks; f32 is what there is.
void carry_out(Meeting& meeting) {
  const Call& first = meeting.calls[0];
  const bool reduces = std::strcmp(first.what, "ncclAllReduce") == 0;
  const std::size_t width = first.count * sizeof(float);
  std::vector<float> all;
  for (std::size_t rank = 0; rank < meeting.calls.size(); ++rank) {
    const Call& call = meeting.calls[rank];
    emulated::as_operation(meeting.turns[rank]);
    emulated::touch(call.from, width, emulated::Touch::read);
    const auto* from = static_cast<const float*>(call.from);
    if (!reduces || all.empty())
      all.insert(all.end(), from, from + first.count);
    else
      for (std::size_t i = 0; i < first.count; ++i) all[i] = combined(all[i], from[i], first.op);
  }
  for (std::size_t rank = 0; rank < meeting.calls.size(); ++rank) {
    emulated::as_operation(meeting.turns[rank]);
    void* to = meeting.calls[rank].to;
    if (emulated::touch(to, all.size() * sizeof(float), emulated::Touch::write))
      std::memcpy(to, all.data(), all.size() * sizeof(float));
  }
}

}  // namespace

struct ncclComm {
  std::shared_ptr<World> world;
  std::size_t rank = 0, calls = 0;
};

namespace {

ncclResult_t join(ncclComm& comm, const Call& call, cudaStream_t stream) {
  if (call.type != ncclFloat32) return ncclInvalidArgument;
  const auto lock = emulated::hold();
  const std::size_t turn = comm.calls++;
  auto& meeting = comm.world->meetings[turn];
  if (!meeting) meeting = std::make_shared<Meeting>(comm.world->ranks);
  for (std::size_t rank = 0; rank < comm.world->ranks; ++rank)
    if (meeting->calls[rank].what && !(meeting->calls[rank] == call)) {
      emulated::report("collective " + std::to_string(turn) + ": rank " + std::to_string(comm.rank) +
                       " calls " + call.told() + ", rank " + std::to_string(rank) + " called " +
                       meeting->calls[rank].told());
      comm.world->broken = true;  // nobody waits for anybody any more
      return ncclInvalidUsage;
    }
  meeting->calls[comm.rank] = call;
  const auto arrive = [meeting, world = comm.world, rank = comm.rank, came = std::make_shared<bool>(false)] {
    if (!std::exchange(*came, true)) ++meeting->ready;
    meeting->turns[rank] = emulated::turn();
    return meeting->ready == meeting->calls.size() || world->broken;
  };
  emulated::enqueue(
      stream,
      [meeting, world = comm.world] {
        if (!world->broken && !std::exchange(meeting->done, true)) carry_out(*meeting);
      },
      arrive);
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ranks, const int*) {
  const auto world = std::make_shared<World>(World{false, std::size_t(ranks), {}});
  for (int i = 0; i < ranks; ++i) comms[i] = new ncclComm{world, std::size_t(i), 0};
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const auto lock = emulated::hold();
  comm->world->broken = true;  // what waits for others of it waits no longer
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return join(*comm, {"ncclAllReduce", count, type, op, from, to}, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return join(*comm, {"ncclAllGather", count, type, 0, from, to}, stream);
}
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }

}  // extern "C"
