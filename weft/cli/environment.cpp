// Reads WORLD_SIZE and RANK.
#include "weft/cli/environment.h"

#include <cstdlib>
#include <string>

#include "weft/base/error.h"
#include "weft/base/fields.h"

namespace weft::cli {
namespace {

int number(const char* name, int otherwise) {
  const char* set = std::getenv(name);
  if (set == nullptr || *set == '\0') return otherwise;
  int value = 0;
  try {
    read_word(set, value);
  } catch (const Error& e) {
    fail(Kind::usage, "environment: ", name, ": ", e.what());
  }
  return value;
}

}  // namespace

Launched launched_by_environment() {
  const Launched out{number("WORLD_SIZE", 0), number("RANK", 0)};
  if (out.world < 0) fail(Kind::usage, "environment: WORLD_SIZE ", out.world, " is not at least 1");
  if (out.rank < 0 || (out.world > 0 && out.rank >= out.world))
    fail(Kind::usage, "environment: RANK ", out.rank, " is not below WORLD_SIZE ", out.world);
  return out;
}

}  // namespace weft::cli
