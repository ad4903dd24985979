#include "weft/cli/checkpoint_diff.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/keep.h"
#include "weft/checkpoint/load.h"
#include "weft/checkpoint/step.h"
#include "weft/tensor/host.h"
#include "weft/tensor/host_memory.h"

namespace weft::cli {
namespace {

using checkpoint::OpenStep;
using checkpoint::Stored;
using nlohmann::json;

struct DiffOptions {
  bool json = false;
};

template <class Visitor>
void describe(Visitor& v, DiffOptions& o) {
  v("json", o.json, "one JSON object");
}

struct PruneOptions {
  int last = 0;
  std::int64_t every = 0;
  std::vector<std::int64_t> steps;
  bool dry_run = false, json = false;
};

template <class Visitor>
void describe(Visitor& v, PruneOptions& o) {
  v("keep_last", o.last, "keep the newest so many");
  v("keep_every", o.every, "and every step that this divides (0: none of them)", legal::count);
  v("keep_steps", o.steps, "and these steps", legal::count);
  v("dry_run", o.dry_run, "say what would be deleted, and delete nothing");
  v("json", o.json, "one JSON object");
}

std::string kind(const Stored& stored) { return text(name(stored.dtype), ' ', stored.global); }

/// The same blocks under the same hashes need not be read.
bool same_blocks(const Stored& a, const Stored& b) {
  if (a.blocks.size() != b.blocks.size()) return false;
  for (std::size_t i = 0; i < a.blocks.size(); ++i)
    if (!(a.blocks[i].box == b.blocks[i].box) || a.blocks[i].hash != b.blocks[i].hash) return false;
  return true;
}

std::vector<double> values(OpenStep& step, const std::string& name, const Stored& stored) {
  const auto memory = host_memory();
  const checkpoint::Named one = checkpoint::whole(name, empty(*memory, stored.global, stored.dtype));
  checkpoint::load_one(step, one);
  return numbers(one.tensor);
}

/// How two tensors of one kind differ; nothing where every bit is equal.
std::optional<json> differing(const std::vector<double>& a, const std::vector<double>& b) {
  std::int64_t count = 0, not_numbers = 0;
  double most = 0, squares = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    size += a[i] * a[i];
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ++count;
    const double off = std::abs(a[i] - b[i]);
    if (std::isnan(off))
      ++not_numbers;
    else
      most = std::max(most, off), squares += off * off;
  }
  if (count == 0) return std::nullopt;
  json out{{"elements", a.size()}, {"differing", count}, {"largest", most}};
  out["relative"] = size > 0 ? json(std::sqrt(squares / size)) : json(nullptr);
  if (not_numbers > 0) out["not_numbers"] = not_numbers;
  return out;
}

json tensors_of(OpenStep& a, OpenStep& b) {
  json out = json::object();
  for (const auto& [name, stored] : a.index().tensors) {
    const auto found = b.index().tensors.find(name);
    if (found == b.index().tensors.end()) {
      out[name] = {{"only", "first"}, {"kind", kind(stored)}};
    } else if (kind(stored) != kind(found->second)) {
      out[name] = {{"first", kind(stored)}, {"second", kind(found->second)}};
    } else if (!same_blocks(stored, found->second)) {
      const auto how = differing(values(a, name, stored), values(b, name, found->second));
      if (how) out[name] = *how;
    }
  }
  for (const auto& [name, stored] : b.index().tensors)
    if (a.index().tensors.count(name) == 0) out[name] = {{"only", "second"}, {"kind", kind(stored)}};
  return out;
}

/// Tensors of either.
std::size_t tensors_in(const OpenStep& a, const OpenStep& b) {
  std::size_t both = a.index().tensors.size();
  for (const auto& [name, stored] : b.index().tensors) both += 1 - a.index().tensors.count(name);
  return both;
}

/// "/run/step" as people write it.
std::string dotted(std::string path) {
  path.erase(0, 1);
  for (char& c : path)
    if (c == '/') c = '.';
  return path;
}

json facts_of(const OpenStep& a, const OpenStep& b) {
  const json first = json::parse(a.facts()).flatten(), second = json::parse(b.facts()).flatten();
  json out = json::object();
  const json none;
  for (const auto& [path, value] : first.items())
    if (const auto& other = second.value(path, none); other != value) out[dotted(path)] = {value, other};
  // A list without elements stands there as null; of what the other has its elements tell.
  for (const auto& [path, value] : second.items())
    if (!first.contains(path) && !value.is_null()) out[dotted(path)] = {none, value};
  return out;
}

/// Four digits are what people compare; --json has all.
std::string short_number(const json& number) { return fmt::format("{:.4g}", number.get<double>()); }

std::string line_of(const std::string& name, const json& how) {
  if (how.contains("only"))
    return text(name, "  ", how["kind"].get<std::string>(), "  only in the ", how["only"].get<std::string>());
  if (how.contains("first"))
    return text(name, "  ", how["first"].get<std::string>(), " and ", how["second"].get<std::string>());
  return text(
      name, "  ", how["differing"], " of ", how["elements"], " differ, by at most ",
      short_number(how["largest"]),
      how["relative"].is_null() ? "" : text(", relative to its norm ", short_number(how["relative"])));
}

int say_prune(const PruneOptions& options, const std::vector<std::int64_t>& gone) {
  if (options.json)
    std::cout << json{{options.dry_run ? "would_delete" : "deleted", gone}}.dump() << '\n';
  else if (gone.empty())
    std::cout << "nothing to delete\n";
  else
    std::cout << (options.dry_run ? "would delete steps " : "deleted steps ") << join(gone, ", ") << '\n';
  return static_cast<int>(Exit::done);
}

std::vector<std::int64_t> would_delete(const std::filesystem::path& root, const checkpoint::KeepRules& keep) {
  std::vector<checkpoint::StepDirectory> whole;
  for (const auto& step : checkpoint::step_directories(root)) {
    try {
      (void)OpenStep(step.path);
      whole.push_back(step);
    } catch (const Error& error) {
      std::cerr << "step " << step.step << " is left alone: " << error.what() << '\n';
    }
  }
  std::vector<std::int64_t> out;
  for (const auto& step : checkpoint::surplus(whole, keep)) out.push_back(step.step);
  return out;
}

}  // namespace

int diff_checkpoints(Args args) {
  DiffOptions options;
  Fields fields(options);
  const auto others = read_flags(fields, args);
  if (others.size() != 2)
    fail(Kind::usage, "checkpoint diff: ", others.size(), " directories are named, expected two");
  OpenStep first(step_in(directory_of("diff", others[0])));
  OpenStep second(step_in(directory_of("diff", others[1])));
  const json tensors = tensors_of(first, second), facts = facts_of(first, second);
  const bool equal = tensors.empty() && facts.empty();
  if (options.json) {
    std::cout << json{{"first", first.directory().string()},
                      {"second", second.directory().string()},
                      {"tensors", tensors},
                      {"facts", facts}}
                     .dump()
              << '\n';
  } else {
    for (const auto& [name, how] : tensors.items()) std::cout << line_of(name, how) << '\n';
    for (const auto& [path, both] : facts.items())
      std::cout << path << "  " << both[0].dump() << " and " << both[1].dump() << '\n';
    std::cout << tensors.size() << " of " << tensors_in(first, second) << " tensors differ, and "
              << facts.size() << " facts\n";
  }
  return static_cast<int>(equal ? Exit::done : Exit::failed);
}

int prune_checkpoints(Args args) {
  PruneOptions options;
  Fields fields(options);
  const auto others = read_flags(fields, args);
  if (others.size() != 1)
    fail(Kind::usage, "checkpoint prune: ", others.size(), " directories are named, expected one");
  const auto root = directory_of("prune", others[0]);
  if (options.last < 1)
    fail(Kind::usage, "checkpoint prune: say how many to keep: --keep-last N, with N at least 1, found ",
         options.last);
  if (checkpoint::step_directories(root).empty())
    fail(Kind::data, "checkpoint prune: ", root.string(), " holds no directory of a step");
  const checkpoint::KeepRules keep{.last = options.last, .every = options.every, .also = options.steps};
  return say_prune(options, options.dry_run ? would_delete(root, keep) : checkpoint::prune(root, keep));
}

}  // namespace weft::cli
