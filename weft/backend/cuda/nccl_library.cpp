#include "weft/backend/cuda/nccl_library.h"

#include <dlfcn.h>

#include "weft/base/error.h"

namespace weft::cuda {
namespace {

constexpr auto file = "libnccl.so.2";

/// Notes in `out` the first that is not there.
template <class Function>
void look_up(NcclLibrary& out, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(out.loaded.get(), name));
  if (!function && out.missing.empty())
    out.missing = text(file, " has no ", name, ", expected one of NCCL 2.7 or later");
}

}  // namespace

NcclLibrary nccl_library() {
  NcclLibrary out{};
  if (void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)) out.loaded = {handle, dlclose};
  if (!out.loaded) {
    const char* why = dlerror();
    out.missing = text(file, " is not to be found (", why ? why : "no reason given", ")");
    return out;
  }
  look_up(out, out.version, "ncclGetVersion");
  look_up(out, out.fresh_id, "ncclGetUniqueId");
  look_up(out, out.open, "ncclCommInitRank");
  look_up(out, out.close, "ncclCommDestroy");
  look_up(out, out.cut, "ncclCommAbort");
  look_up(out, out.failure, "ncclCommGetAsyncError");
  look_up(out, out.told, "ncclGetErrorString");
  look_up(out, out.all_reduce, "ncclAllReduce");
  look_up(out, out.reduce_scatter, "ncclReduceScatter");
  look_up(out, out.all_gather, "ncclAllGather");
  look_up(out, out.broadcast, "ncclBroadcast");
  look_up(out, out.send, "ncclSend");
  look_up(out, out.recv, "ncclRecv");
  look_up(out, out.begin_group, "ncclGroupStart");
  look_up(out, out.end_group, "ncclGroupEnd");
  return out;
}

}  // namespace weft::cuda
