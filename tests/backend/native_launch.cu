// A kernel that does nothing, launched as all are.
#include <gpu.h>

namespace weft::conformance {
namespace {

__global__ void nothing() {}

}  // namespace

void launch_nothing() { gpu::launch(nullptr, {3, 32, 100}, nothing); }

}  // namespace weft::conformance
