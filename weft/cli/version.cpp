// weft version: what this binary was made with.
#include <iostream>

#include "weft/base/error.h"
#include "weft/cli/verbs.h"

namespace weft::cli {
namespace {

int run_version(Args args) {
  if (!args.empty()) fail(Kind::usage, "version: takes no '", args[0], "'");
  std::cout << "weft " WEFT_VERSION "\n";
  return static_cast<int>(Exit::done);
}

VerbHelp about_version() { return {.usage = "weft version", .examples = {}, .topics = {}}; }

}  // namespace

Verb version_verb() {
  return {"version", "shows what this binary was made with", run_version, about_version};
}

}  // namespace weft::cli
