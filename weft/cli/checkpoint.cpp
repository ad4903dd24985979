// weft checkpoint: what is saved under a directory, and whether every byte is what was written.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/base/nearest.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/step.h"
#include "weft/cli/checkpoint_diff.h"
#include "weft/cli/convert.h"
#include "weft/cli/verbs.h"

namespace weft::cli {
namespace {

using checkpoint::OpenStep;
using checkpoint::StepDirectory;
using nlohmann::json;

struct CheckpointOptions {
  bool json = false;
};

template <class Visitor>
void describe(Visitor& v, CheckpointOptions& o) {
  v("json", o.json, "one JSON object");
}

struct CheckpointCommand {
  CheckpointOptions options;
  std::filesystem::path directory;
};

CheckpointCommand asked(std::string_view sub, Args args) {
  CheckpointCommand out;
  Fields fields(out.options);
  const auto others = read_flags(fields, args);
  if (others.size() != 1)
    fail(Kind::usage, "checkpoint ", sub, ": ", others.size(), " directories are named, expected one");
  out.directory = directory_of(sub, others[0]);
  return out;
}

json facts_of(const OpenStep& step) {
  return json{{"directory", step.directory().string()},
              {"tensors", step.index().tensors.size()},
              {"files", step.index().files.size()},
              {"bytes", step.bytes()},
              {"digest", step.index_hash().hex()}};
}

// A line of `list`: a step that cannot be read is listed with the reason. One without its mark is being saved
// now, or its run was killed; one that has its mark was whole once.
json listed(const StepDirectory& step) {
  json out;
  try {
    out = facts_of(OpenStep(step.path));
    out["complete"] = true;
    out["damaged"] = false;
  } catch (const Error& error) {
    std::error_code unknown;
    out = {{"directory", step.path.string()},
           {"complete", false},
           {"damaged", std::filesystem::exists(step.path / checkpoint::complete_name, unknown)},
           {"reason", error.what()}};
  }
  out["step"] = step.step;
  return out;
}

std::string line_of(const json& step) {
  const std::string number = text(step["step"].get<std::int64_t>());
  const std::string start = number + std::string(12 - std::min<std::size_t>(11, number.size()), ' ');
  if (!step["complete"].get<bool>()) return start + step["reason"].get<std::string>();
  const std::string size = human_bytes(step["bytes"].get<std::int64_t>());
  return text(start, size, std::string(12 - std::min<std::size_t>(11, size.size()), ' '), step["tensors"],
              " tensors in ", step["files"], " files  ", step["digest"].get<std::string>());
}

int list_steps(Args args) {
  const CheckpointCommand what = asked("list", args);
  const auto steps = checkpoint::step_directories(what.directory);
  json all = json::array();
  for (const StepDirectory& step : steps) all.push_back(listed(step));
  if (what.options.json) std::cout << json{{"steps", all}}.dump() << '\n';
  if (steps.empty() && !what.options.json)
    fail(Kind::data, "checkpoint list: ", what.directory.string(), " holds no directory of a step");
  std::size_t damaged = 0;
  for (const json& step : all) {
    if (!what.options.json) std::cout << line_of(step) << '\n';
    damaged += step["damaged"].get<bool>() ? 1 : 0;
  }
  if (damaged > 0)
    fail(Kind::data, "checkpoint list: ", damaged, " of ", steps.size(),
         " steps were complete and are damaged");
  return static_cast<int>(Exit::done);
}

int show_step(Args args) {
  const CheckpointCommand what = asked("show", args);
  const OpenStep step(step_in(what.directory));
  json out = facts_of(step);
  out["facts"] = json::parse(step.facts());
  for (const auto& [name, stored] : step.index().tensors) {
    const auto dims = stored.global.all();
    out["shapes"][name] = {{"dtype", weft::name(stored.dtype)},
                           {"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
                           {"blocks", stored.blocks.size()}};
  }
  for (const checkpoint::AttachedFact& file : step.index().attached)
    out["attached"][file.name] = {{"bytes", file.bytes}, {"xxh3_128", file.hash.hex()}};
  if (what.options.json) {
    std::cout << out.dump() << '\n';
    return static_cast<int>(Exit::done);
  }
  std::cout << step.directory().string() << '\n'
            << human_bytes(step.bytes()) << " in " << step.index().files.size() << " files, "
            << step.index().tensors.size() << " tensors, digest " << step.index_hash().hex() << '\n';
  for (const auto& [name, stored] : step.index().tensors)
    std::cout << "  " << name << "  " << weft::name(stored.dtype) << ' ' << stored.global << "  "
              << stored.blocks.size() << (stored.blocks.size() == 1 ? " block\n" : " blocks\n");
  for (const checkpoint::AttachedFact& file : step.index().attached)
    std::cout << "  " << file.name << "  " << human_bytes(file.bytes) << '\n';
  std::cout << out["facts"].dump(2) << '\n';
  return static_cast<int>(Exit::done);
}

// Whether the step is whole; what is wrong is said at once, so that one damaged step does not hide another.
json verified(const std::filesystem::path& step) {
  try {
    const checkpoint::Verified found = checkpoint::verify(step);
    return {{"directory", step.string()},
            {"whole", true},
            {"tensors", found.tensors},
            {"blocks", found.blocks},
            {"bytes", found.bytes}};
  } catch (const Error& error) {
    return {{"directory", step.string()}, {"whole", false}, {"reason", error.what()}};
  }
}

int verify_step(Args args) {
  const CheckpointCommand what = asked("verify", args);
  // A root means every step in it.
  std::vector<std::filesystem::path> steps;
  for (const StepDirectory& step : checkpoint::step_directories(what.directory)) steps.push_back(step.path);
  if (steps.empty()) steps.push_back(what.directory);
  json all = json::array();
  std::size_t damaged = 0;
  for (const auto& step : steps) {
    const json& found = all.emplace_back(verified(step));
    const bool whole = found["whole"].get<bool>();
    if (!whole) ++damaged;
    if (what.options.json) continue;
    if (whole)
      std::cout << step.string() << ": every hash is right: " << found["tensors"] << " tensors, "
                << found["blocks"] << " blocks, " << human_bytes(found["bytes"].get<std::int64_t>()) << '\n';
    else
      std::cout << found["reason"].get<std::string>() << '\n';
  }
  if (what.options.json) std::cout << json{{"verified", all}}.dump() << '\n';
  if (damaged > 0)
    fail(Kind::data, "checkpoint verify: ", damaged, " of ", steps.size(),
         " steps are damaged or unfinished");
  return static_cast<int>(Exit::done);
}

struct Sub {
  std::string_view name;
  int (*run)(Args);
};
constexpr std::array subs{Sub{"list", list_steps},         Sub{"show", show_step},
                          Sub{"verify", verify_step},      Sub{"diff", diff_checkpoints},
                          Sub{"prune", prune_checkpoints}, Sub{"convert", convert_checkpoint}};

int run_checkpoint(Args args) {
  std::vector<std::string_view> names;
  for (const Sub& sub : subs) names.push_back(sub.name);
  if (args.empty()) fail(Kind::usage, "checkpoint: expected ", join(names, ", "));
  for (const Sub& sub : subs)
    if (sub.name == args[0]) return sub.run(args.subspan(1));
  fail(Kind::usage, "checkpoint: '", args[0], "' is none of ", join(names, ", "),
       did_you_mean(args[0], names));
}

VerbHelp about_checkpoint() {
  return {
      .usage =
          "weft checkpoint list|show|verify|diff|prune [options] DIR [DIR]; weft checkpoint convert "
          "[options] FROM TO",
      .examples = {{"weft checkpoint list run/checkpoints", "a line a step: size, tensors, digest"},
                   {"weft checkpoint show run/checkpoints",
                    "tensors and facts of the newest complete step, or of the step named"},
                   {"weft checkpoint verify run/checkpoints/step_00000100",
                    "reads every byte and compares every hash; exit status 2 where one is wrong"},
                   {"weft checkpoint diff run/checkpoints other/checkpoints",
                    "which tensors and facts differ, and by how much; exit status 1 where any does"},
                   {"weft checkpoint prune run/checkpoints --keep-last 3 --keep-every 1000",
                    "deletes all but the last three and every thousandth step"},
                   {"weft checkpoint convert Qwen3-0.6B run/checkpoints",
                    "a Hugging Face directory to a checkpoint that weft train --finetune --load takes"},
                   {"weft checkpoint convert megatron/checkpoints run/checkpoints",
                    "Megatron-LM's newest step, or DeepSpeed's, to one that weft train --load goes on from"},
                   {"weft checkpoint convert --to megatron Qwen3-0.6B megatron",
                    "weights that Megatron-LM loads, under any of its layouts"},
                   {"weft checkpoint convert --dtype q8_0 run/checkpoints model.gguf",
                    "one file for llama.cpp, from which convert also reads"},
                   {"weft checkpoint convert --dtype bf16 run/checkpoints exported",
                    "the newest step to a Hugging Face directory; read again and compared"}},
      .topics = {{"All of them", {{"--json", "", "one JSON object"}}},
                 {"prune",
                  {{"--keep-last", "N", "keep the newest so many; needed"},
                   {"--keep-every", "N", "and every step that this divides (0: none of them)"},
                   {"--keep-steps", "N ...", "and these steps"},
                   {"--dry-run", "", "say what would be deleted, and delete nothing"}}},
                 convert_topic()}};
}

}  // namespace

std::filesystem::path directory_of(std::string_view sub, const std::string& given) {
  std::error_code error;
  if (!std::filesystem::is_directory(given, error))
    fail(Kind::usage, "checkpoint ", sub, ": ", given,
         std::filesystem::exists(given, error) ? " is no directory" : " is not there");
  return given;
}

std::filesystem::path step_in(const std::filesystem::path& directory) {
  if (checkpoint::step_directories(directory).empty()) return directory;
  std::vector<std::string> notices;
  const StepDirectory found = checkpoint::latest(directory, notices);
  for (const std::string& notice : notices) std::cerr << notice << '\n';
  return found.path;
}

Verb checkpoint_verb() {
  return {"checkpoint", "lists, shows, verifies, compares, prunes and converts checkpoints", run_checkpoint,
          about_checkpoint};
}

}  // namespace weft::cli
