// weft version: what this binary was made with, and what it finds on this machine.
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>

#include "weft/backend/cpu/fast/instruction_set.h"
#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/flags.h"
#include "weft/cli/build.h"
#include "weft/cli/verbs.h"

namespace weft::cli {
namespace {

struct VersionOptions {
  bool json = false;
};
template <class Visitor>
void describe(Visitor& v, VersionOptions& c) {
  v("json", c.json, "print one JSON object");
}

std::string as_text() {
  std::string sets, libraries;
  for (const auto set : fast::instruction_sets)
    if (fast::is_built(set)) sets += text(sets.empty() ? "" : ", ", fast::name(set));
  for (const Library& l : libraries_found())
    libraries += text(libraries.empty() ? "" : ", ", l.name, " ", l.version.empty() ? "missing" : l.version);
  return text("weft ", version_number(), "\n", "compiler          ", compiler(), "\n", "instruction sets  ",
              sets, "; this processor runs ", fast::name(fast::best_here()), "\n", "libraries         ",
              libraries, "\n");
}

std::string as_json() {
  nlohmann::ordered_json out;
  out["version"] = version_number();
  out["compiler"] = compiler();
  for (const auto set : fast::instruction_sets)
    if (fast::is_built(set)) out["instruction_sets"]["compiled"].push_back(fast::name(set));
  out["instruction_sets"]["here"] = fast::name(fast::best_here());
  for (const Library& l : libraries_found()) {
    if (l.version.empty())
      out["libraries"][std::string(l.name)] = nullptr;
    else
      out["libraries"][std::string(l.name)] = l.version;
  }
  return out.dump(2);
}

int run_version(Args args) {
  VersionOptions options;
  Fields fields(options);
  const auto others = read_flags(fields, args);
  if (!others.empty()) fail(Kind::usage, "version: takes no '", others[0], "'");
  std::cout << (options.json ? as_json() + "\n" : as_text());
  return static_cast<int>(Exit::done);
}

VerbHelp about_version() {
  return {.usage = "weft version [--json]",
          .examples = {{"weft version --json", "for a program, or a report of a fault"}},
          .topics = {{"Options", {{"--json", "", "print one JSON object"}}}}};
}

}  // namespace

Verb version_verb() {
  return {"version", "shows what this binary was made with", run_version, about_version};
}

}  // namespace weft::cli
