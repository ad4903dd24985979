// Names over what a process does, for profilers, declared as NVIDIA's header does.
#pragma once

extern "C" {
int nvtxRangePushA(const char* message);
int nvtxRangePop();
}
