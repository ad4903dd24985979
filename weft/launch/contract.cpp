#include "weft/launch/contract.h"

#include "weft/base/error.h"

namespace weft::launch {

void apply(const Contract& c, Environment& e) {
  const Begin& b = c.begin;
  const auto set = [&](const char* name, const auto& value) { e[name] = text(value); };
  const int rank = b.first_rank + c.local_rank;
  set("RANK", rank);
  set("LOCAL_RANK", c.local_rank);
  set("WORLD_SIZE", b.world);
  set("LOCAL_WORLD_SIZE", b.slots);
  set("GROUP_RANK", b.node);
  set("GROUP_WORLD_SIZE", b.nodes);
  set("ROLE_RANK", rank);
  set("ROLE_NAME", c.role);
  set("ROLE_WORLD_SIZE", b.world);
  set("MASTER_ADDR", c.address);
  set("MASTER_PORT", c.port);
  set("TORCHELASTIC_RESTART_COUNT", b.restarts);
  set("TORCHELASTIC_MAX_RESTARTS", b.max_restarts);
  set("TORCHELASTIC_RUN_ID", c.run_id);
  set("TORCHELASTIC_USE_AGENT_STORE", "False");  // the port is free for the workers' own store
  e.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (b.slots > 1) e.emplace("OMP_NUM_THREADS", "1");
}

}  // namespace weft::launch
