// A fake of NCCL between processes that each have an emulated GPU of their own: what ranks say to each other
// lies in files of a folder. Slow, and only for what needs processes; all else that NCCL refuses, nccl.cpp
// refuses.
#pragma once

#include <filesystem>

#include "weft/backend/cuda/nccl_library.h"

namespace emulated {

/// From now on this process's NCCL is that of the folder, which all processes share.
void share_nccl(const std::filesystem::path& folder);
bool shares_nccl();
weft::cuda::NcclLibrary nccl_of_folder();

/// Does what streams of this process can do by now: a GPU goes on while its host waits for other hosts.
void go_on();

}  // namespace emulated
