// The affinity mask is what a launcher, a container or a person gave this process.
#include "weft/backend/cpu/threads.h"

#include <sched.h>

#include "weft/base/error.h"

namespace weft {

int processors() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return 1;
  return CPU_COUNT(&mine);
}

int checked_threads(const char* who, int asked) {
  constexpr int most = 1024;
  if (asked < 0 || asked > most)
    fail(Kind::usage, who, ": ", asked, " threads asked for, expected 1 to ", most, ", or 0 for all");
  return asked == 0 ? processors() : asked;
}

}  // namespace weft
