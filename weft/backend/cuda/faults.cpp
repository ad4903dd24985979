#include "weft/backend/cuda/faults.h"

#include <utility>

#include "weft/base/error.h"

namespace weft::cuda {
namespace {

const char* name(Index which) {
  switch (which) {
    case Index::rope:
      return "rope: position ";
    case Index::gather_rows:
      return "gather_rows: index ";
    case Index::scatter_add_rows:
      return "scatter_add_rows: index ";
    case Index::route_backward:
      return "route_backward: expert ";
    case Index::count_experts:
      return "count_experts: expert ";
    case Index::plan_rows:
      return "plan_rows: expert ";
    case Index::none:
      break;
  }
  return "an index: ";
}

}  // namespace

Faults::Faults() { *word() = 0; }

void Faults::say() {
  const FaultWord fault = std::exchange(*word(), 0);
  if (fault == 0) return;
  fail(Kind::shape, name(Index(fault >> 56)), std::int32_t(fault), " at ", fault >> 32 & 0xFFFFFFU,
       " is out of range");
}

}  // namespace weft::cuda
