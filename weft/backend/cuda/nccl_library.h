// NCCL's functions, found when the first GPU is opened: the program runs where there is no such library.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>

namespace weft::cuda {

struct NcclLibrary {
  decltype(&ncclGetVersion) version;
  decltype(&ncclGetUniqueId) fresh_id;
  decltype(&ncclCommInitRank) open;
  decltype(&ncclCommDestroy) close;
  decltype(&ncclCommAbort) cut;
  decltype(&ncclCommGetAsyncError) failure;
  decltype(&ncclGetErrorString) told;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) recv;
  decltype(&ncclGroupStart) begin_group;
  decltype(&ncclGroupEnd) end_group;
  std::shared_ptr<void> loaded = nullptr;  // stays as long as somebody may call
  std::string missing = {};                // why there is none, and then no function is to be called
};

/// Fails never. On the emulated GPU: tests/support/gpu.
NcclLibrary nccl_library();

}  // namespace weft::cuda
