// Opening data sets: which members, how many samples of each, and how they are blended.
#include "weft/data/open.h"

#include <algorithm>
#include <future>
#include <numeric>
#include <set>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/workers.h"
#include "weft/data/index_cache.h"
#include "weft/data/keyed.h"

namespace weft::data {
namespace {

constexpr const char* usual_split = "969, 30, 1";
constexpr int most_at_once = 2;  // indices that are built side by side: each takes memory

using Set = std::shared_ptr<const Dataset>;

// Mock data is shared out in thirds whatever is asked, as Megatron does it.
std::optional<Portions> portions_of(const DataRequest& request, Split split) {
  Portions out{.split = split};
  if (!request.paths.mock && !request.paths.shared) return out;
  out.text = request.paths.mock ? "1,1,1" : request.split.value_or(usual_split);
  out.matrix = split_matrix(*out.text);
  const auto& portion = (*out.matrix)[static_cast<std::size_t>(split)];
  if (!portion) return std::nullopt;
  out.portion = *portion;
  return out;
}

// One split of a request: puts its members together.
class SplitOpener {
 public:
  SplitOpener(const DataRequest& request, Split split, const Members& members)
      : request_(request), split_(split), members_(members) {}

  std::vector<Set> open(SamplesWanted size) const {
    if (request_.paths.mock) return {members_.made_up(size).set};
    const auto& blend = request_.paths.shared ? request_.paths.shared
                                              : request_.paths.per_split[static_cast<std::size_t>(split_)];
    if (!blend) return {};
    if (split_ == Split::valid && request_.validation == ValidationSets::separate) return each(*blend, size);
    return {one(*blend, size)};
  }

 private:
  Set one(const BlendArguments& blend, SamplesWanted size) const {
    const bool plain = blend.prefixes.size() == 1 && (blend.weights.empty() || !request_.paths.shared);
    if (plain) return members_.of(blend.prefixes.front(), size).set;
    if (request_.order == DataOrder::keyed) return keyed(blend, size);
    return blend.weights.empty() ? by_length(blend, size) : by_weight(blend, size);
  }

  std::vector<Set> each(const BlendArguments& blend, SamplesWanted size) const {
    std::vector<Set> sets;
    for (const std::string& prefix : blend.prefixes) sets.push_back(members_.of(prefix, size).set);
    return sets;
  }

  Set by_weight(const BlendArguments& blend, SamplesWanted size) const {
    if (!size)
      fail(Kind::usage,
           "blend: weights are given, but no number of samples ({eval.whole_set} or "
           "{data.difficulty.metrics}); leave "
           "the weights out");
    const auto once = normalized(blend.weights);
    std::int64_t total = 0;
    const auto parts = shares(once, *size, request_.surplus);
    for (const auto& part : parts) total += part.target;
    std::vector<Member> members =
        members_of(blend.prefixes, [&](std::size_t i) { return SamplesWanted(parts[i].built); });
    return blended(std::move(members), normalized(once), total);
  }

  // Without weights every member gives one epoch, mixed by length: all of it, or as much as is asked for.
  Set by_length(const BlendArguments& blend, SamplesWanted size) const {
    std::vector<double> weights;
    std::int64_t total = 0;
    std::vector<Member> members = members_of(blend.prefixes, [](std::size_t) { return SamplesWanted(); });
    for (const Member& m : members) {
      weights.push_back(static_cast<double>(m.set->size()));
      total += m.set->size();
    }
    if (!size) return blended(std::move(members), {}, std::nullopt);
    if (exact_epochs() > 0 && *size > total)
      fail(Kind::usage, "blend: {data.exact_epochs} ", exact_epochs(), " gives ", total, " samples, and ",
           *size, " are asked for: take more epochs, or shorten the run");
    return blended(std::move(members), normalized(weights), std::min(*size, total));
  }

  // Members do not know of each other, so their indices are built side by side. The same prefix twice is
  // built once and then found: two writers of one cache would meet.
  template <class SizeOf>
  std::vector<Member> members_of(const std::vector<std::string>& prefixes, const SizeOf& size_of) const {
    const std::set<std::string> different(prefixes.begin(), prefixes.end());
    const bool together = different.size() == prefixes.size();
    Workers workers(together ? std::min(most_at_once, static_cast<int>(prefixes.size())) : 1);
    std::vector<std::future<Member>> opening;
    for (std::size_t i = 0; i < prefixes.size(); ++i)
      opening.push_back(workers.submit([&, i] { return members_.of(prefixes[i], size_of(i)); }));
    for (const auto& one : opening) one.wait();
    std::vector<Member> members;
    for (auto& one : opening) members.push_back(one.get());
    return members;
  }

  Set blended(std::vector<Member> members, std::vector<double> weights, SamplesWanted size) const {
    BlendIdentity identity{.fractions = weights, .size = size};
    std::vector<Set> sets;
    for (Member& m : members) {
      identity.members.push_back(std::move(m.identity));
      identity.sizes.push_back(m.set->size());
      sets.push_back(std::move(m.set));
    }
    const auto build = [&] { return size ? blend_index(weights, *size) : exhaustive_index(identity.sizes); };
    if (!request_.cache_path) return std::make_shared<Blend>(std::move(sets), build());
    if (auto found = find_blend(*request_.cache_path, identity))
      return std::make_shared<Blend>(std::move(sets), std::move(*found));
    auto index = build();
    store_blend(*request_.cache_path, identity, index);
    return std::make_shared<Blend>(std::move(sets), std::move(index));
  }

  std::int64_t exact_epochs() const { return split_ == Split::train ? request_.exact_epochs : 0; }

  Set keyed(const BlendArguments& blend, SamplesWanted size) const {
    if (exact_epochs() > 0)
      fail(Kind::usage, "blend: {data.exact_epochs} ", exact_epochs(),
           " of several files needs an order that ends: take {data.index=stored}");
    std::vector<double> weights = blend.weights;
    std::int64_t all = 0;
    for (const std::string& prefix : blend.prefixes) {
      if (!blend.weights.empty()) break;
      const std::int64_t samples = members_.of(prefix, std::nullopt).set->size();
      weights.push_back(static_cast<double>(samples));
      all += samples;
    }
    if (!size && !blend.weights.empty())
      fail(Kind::usage,
           "blend: weights are given, but no number of samples ({eval.whole_set} or "
           "{data.difficulty.metrics}); leave "
           "the weights out");
    const std::int64_t total = blend.weights.empty() ? std::min(size.value_or(all), all) : *size;
    const auto places = KeyedBlend::places(weights);
    std::vector<Set> sets;
    for (std::size_t i = 0; i < blend.prefixes.size(); ++i)
      sets.push_back(members_.of(blend.prefixes[i], KeyedBlend::needed(places[i], total)).set);
    return std::make_shared<KeyedBlend>(std::move(sets), weights, total, request_.seed);
  }

  const DataRequest& request_;
  Split split_;
  const Members& members_;
};

void refuse_object_storage(const BlendArguments& blend) {
  for (const std::string& prefix : blend.prefixes) {
    if (prefix.starts_with("s3://") || prefix.starts_with("msc://")) {
      fail(Kind::usage, prefix, ": weft does not read object storage; copy the .bin and .idx to a disk");
    }
  }
}

}  // namespace

DataPaths data_paths(const DataPathFlags& flags) {
  const bool any_split_path = std::any_of(flags.split_paths.begin(), flags.split_paths.end(),
                                          [](const auto& words) { return !words.empty(); });
  if (!flags.data_path.empty() && flags.data_args_path)
    fail(Kind::usage, "{data.paths} and {data.paths_file} are both given; give one");
  if (any_split_path && flags.per_split_data_args_path) {
    fail(Kind::usage,
         "{data.per_split_file} is given together with {data.train_paths}, {data.valid_paths} or "
         "{data.test_paths}; give one");
  }
  DataPaths paths{.shared = {}, .per_split = {}, .mock = flags.mock};
  if (flags.mock) return paths;
  if (!flags.data_path.empty()) {
    paths.shared = parse_blend(flags.data_path, "{data.paths}");
  } else if (flags.data_args_path) {
    paths.shared = read_blend_file(*flags.data_args_path);
  } else if (flags.per_split_data_args_path) {
    paths.per_split = read_split_blend_file(*flags.per_split_data_args_path);
  } else if (any_split_path) {
    for (const Split split : splits) {
      const auto& words = flags.split_paths[static_cast<std::size_t>(split)];
      if (!words.empty())
        paths.per_split[static_cast<std::size_t>(split)] =
            parse_blend(words, text("--", name(split), "-data-path"));
    }
  } else {
    paths.mock = true;  // as Megatron does where no path is given
  }
  if (paths.shared) refuse_object_storage(*paths.shared);
  for (const auto& blend : paths.per_split)
    if (blend) refuse_object_storage(*blend);
  return paths;
}

Range documents_of(const Portions& portions, std::int64_t documents, const std::string& who,
                   SamplesWanted size) {
  const Range range = range_of(portions.portion, documents);
  if (range.size() == 0)
    fail(Kind::data, who, ": none of ", documents, " documents fall to this split, but ",
         size ? text(*size) : "all", " samples are asked of it; change {data.split}");
  return range;
}

Datasets open_datasets(const DataRequest& request, const OpenMembers& open) {
  if (!request.paths.shared && !request.paths.mock && request.split) {
    fail(Kind::usage, "{data.split} ", *request.split,
         " is given together with paths for each split, which need none");
  }
  Datasets datasets;
  for (const Split split : splits) {
    const SamplesWanted size = request.sizes[static_cast<std::size_t>(split)];
    const auto portions = portions_of(request, split);
    if (!portions || size == SamplesWanted(0)) continue;
    const auto members = open(*portions);
    datasets.of[static_cast<std::size_t>(split)] = SplitOpener(request, split, *members).open(size);
  }
  return datasets;
}

}  // namespace weft::data
