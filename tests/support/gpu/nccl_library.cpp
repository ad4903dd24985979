// On the emulated GPU the library is part of the program, unless a test takes it away.
#include "weft/backend/cuda/nccl_library.h"

#include "tests/support/gpu/nccl_folder.h"
#include "tests/support/gpu/runtime.h"

namespace weft::cuda {

NcclLibrary nccl_library() {
  if (emulated::shares_nccl()) return emulated::nccl_of_folder();
  NcclLibrary out{ncclGetVersion,    ncclGetUniqueId,       ncclCommInitRank,   ncclCommDestroy,
                  ncclCommAbort,     ncclCommGetAsyncError, ncclGetErrorString, ncclAllReduce,
                  ncclReduceScatter, ncclAllGather,         ncclBroadcast,      ncclSend,
                  ncclRecv,          ncclGroupStart,        ncclGroupEnd};
  if (!emulated::has_nccl()) out.missing = "libnccl.so.2 is not to be found (this machine has none)";
  return out;
}

}  // namespace weft::cuda
