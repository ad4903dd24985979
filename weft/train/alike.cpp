// Digests are told first: whole lists of settings travel only where somebody has others.
#include "weft/train/alike.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/format.h"
#include "weft/base/hash.h"
#include "weft/train/describe.h"

namespace weft {
namespace {

/// Where a machine has its processors, and what a file is called there.
constexpr std::array<std::string_view, 18> ones_own{"run.device",
                                                    "run.ranks",
                                                    "run.threads",
                                                    "log.jsonl",
                                                    "log.tensorboard",
                                                    "data.cache",
                                                    "data.paths",
                                                    "data.train_paths",
                                                    "data.valid_paths",
                                                    "data.test_paths",
                                                    "data.paths_file",
                                                    "data.per_split_file",
                                                    "data.tokenizer.model",
                                                    "data.tokenizer.vocab_file",
                                                    "data.tokenizer.merge_file",
                                                    "checkpoint.load",
                                                    "checkpoint.pretrained",
                                                    "optimizer.offload.directory"};

bool may_be_own(std::string_view path) {
  return path.starts_with("profile.") || std::ranges::find(ones_own, path) != ones_own.end();
}

/// The family is what the command begins with, and no field.
constexpr std::string_view family = "family";

/// A line each: the field, and what it holds.
std::string listed(const TrainConfig& config) {
  TrainConfig copy = config;  // Fields point into what they list
  const Fields fields(copy);
  std::string out = text(family, ' ', copy.model.kind, '\n');
  for (const auto& field : fields.all())
    if (!may_be_own(field->path())) out += text(field->path(), ' ', join(field->write(), " "), '\n');
  return out;
}

std::string name_in(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(' '));
  return name == family ? "their family" : text('{', name, '}');
}

std::string value_in(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string value(space == line.npos ? std::string_view() : line.substr(space + 1));
  return value.empty() ? "unset" : value;
}

}  // namespace

void must_be_alike(const TrainConfig& mine, Communicator& world) {
  const std::string settings = listed(mine);
  const std::vector<std::string> digests = world.tell_all(hash(settings).hex());
  const auto other = std::ranges::find_if(digests, [&](const std::string& d) { return d != digests[0]; });
  if (other == digests.end()) return;
  const auto rank = std::size_t(other - digests.begin());
  const std::vector<std::string> all = world.tell_all(settings);
  const auto first = split(all[0], '\n'), second = split(all[rank], '\n');
  const auto [a, b] = std::ranges::mismatch(first, second);
  if (a == first.end() || b == second.end())
    fail(Kind::usage, "ranks 0 and ", rank, " are of different programs: start all with the same");
  fail(Kind::usage, "ranks 0 and ", rank, " were started for different runs: ", name_in(*a), " is ",
       value_in(*a), " for the one and ", value_in(*b), " for the other; give all of them the same flags");
}

}  // namespace weft
