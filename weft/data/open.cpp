// Opening GPT data sets: which members, how many samples of each, cached or built.
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
using Asked = std::optional<std::int64_t>;

// One split of a request: opens members and puts them together.
class SplitOpener {
 public:
  SplitOpener(const DataRequest& request, Split split) : request_(request), split_(split) {
    // Paths for each split leave nothing to share out: each takes all of its documents.
    if (request.paths.mock || request.paths.shared) {
      // Mock data is shared out in thirds whatever is asked, as Megatron does it.
      split_text_ = request.paths.mock ? "1,1,1" : request.split.value_or(usual_split);
      matrix_ = split_matrix(*split_text_);
      portion_ = (*matrix_)[static_cast<std::size_t>(split)];
    } else {
      portion_ = Portion{0.0, 1.0};
    }
  }

  /// Nothing where the split has no share at all.
  std::vector<Set> open() const {
    const Asked size = request_.sizes[static_cast<std::size_t>(split_)];
    if (!portion_ || size == Asked(0)) return {};
    if (request_.paths.mock)
      return {member(mock_source(request_.mock_vocabulary, request_.rows.eod), size).set};
    const auto& blend = request_.paths.shared ? request_.paths.shared
                                              : request_.paths.per_split[static_cast<std::size_t>(split_)];
    if (!blend) return {};
    if (split_ == Split::valid && request_.validation == ValidationSets::separate) return each(*blend, size);
    return {one(*blend, size)};
  }

 private:
  struct Member {
    Set set;
    Identity identity;
  };

  Set one(const BlendArguments& blend, Asked size) const {
    const bool plain = blend.prefixes.size() == 1 && (blend.weights.empty() || !request_.paths.shared);
    if (plain) return member(open_file(blend.prefixes.front()), size).set;
    if (request_.order == DataOrder::keyed) return keyed(blend, size);
    return blend.weights.empty() ? by_length(blend, size) : by_weight(blend, size);
  }

  std::vector<Set> each(const BlendArguments& blend, Asked size) const {
    std::vector<Set> sets;
    for (const std::string& prefix : blend.prefixes) sets.push_back(member(open_file(prefix), size).set);
    return sets;
  }

  Set by_weight(const BlendArguments& blend, Asked size) const {
    if (!size)
      fail(Kind::usage,
           "blend: weights are given, but no number of samples ({eval.whole_set}); leave the weights out");
    const auto once = normalized(blend.weights);
    std::int64_t total = 0;
    const auto parts = shares(once, *size, request_.surplus);
    for (const auto& part : parts) total += part.target;
    std::vector<Member> members =
        members_of(blend.prefixes, [&](std::size_t i) { return Asked(parts[i].built); });
    return blended(std::move(members), normalized(once), total);
  }

  // Without weights every member gives one epoch, mixed by length: all of it, or as much as is asked for.
  Set by_length(const BlendArguments& blend, Asked size) const {
    std::vector<double> weights;
    std::int64_t total = 0;
    std::vector<Member> members = members_of(blend.prefixes, [](std::size_t) { return Asked(); });
    for (const Member& m : members) {
      weights.push_back(static_cast<double>(m.set->size()));
      total += m.set->size();
    }
    if (!size) return blended(std::move(members), {}, std::nullopt);
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
      opening.push_back(workers.submit([&, i] { return member(open_file(prefixes[i]), size_of(i)); }));
    for (const auto& one : opening) one.wait();
    std::vector<Member> members;
    for (auto& one : opening) members.push_back(one.get());
    return members;
  }

  Set blended(std::vector<Member> members, std::vector<double> weights, Asked size) const {
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

  Set keyed(const BlendArguments& blend, Asked size) const {
    std::vector<std::shared_ptr<const Source>> sources;
    std::vector<double> weights = blend.weights;
    std::int64_t all = 0;
    for (const std::string& prefix : blend.prefixes) {
      sources.push_back(open_file(prefix));
      if (!blend.weights.empty()) continue;
      const std::int64_t samples = member(sources.back(), std::nullopt).set->size();
      weights.push_back(static_cast<double>(samples));
      all += samples;
    }
    if (!size && !blend.weights.empty())
      fail(Kind::usage,
           "blend: weights are given, but no number of samples ({eval.whole_set}); leave the weights out");
    const std::int64_t total = blend.weights.empty() ? std::min(size.value_or(all), all) : *size;
    const auto places = KeyedBlend::places(weights);
    std::vector<Set> sets;
    for (std::size_t i = 0; i < sources.size(); ++i)
      sets.push_back(member(sources[i], KeyedBlend::needed(places[i], total)).set);
    return std::make_shared<KeyedBlend>(std::move(sets), weights, total, request_.seed);
  }

  std::shared_ptr<const Source> open_file(const std::string& prefix) const {
    const auto file =
        std::make_shared<const TokenFile>(prefix, TokenFile::Options{.access = request_.access});
    if (request_.rows.vocabulary - 1 > range(file->type()).high) {
      fail(Kind::data, prefix, ": tokens of type ", name(file->type()), " hold ids up to ",
           range(file->type()).high, ", the vocabulary has ", request_.rows.vocabulary,
           "; the data was made with another tokenizer");
    }
    return source_of(file);
  }

  Member member(std::shared_ptr<const Source> source, Asked size) const {
    const Range range = range_of(*portion_, source->num_sequences());
    const std::string who = text(source->name(), ' ', name(split_));
    if (range.size() == 0) {
      fail(Kind::data, who, ": none of ", source->num_sequences(), " documents fall to this split, but ",
           size ? text(*size) : "all", " samples are asked of it; change {data.split}");
    }
    Member out{nullptr, identity_of(*source, size)};
    const Order order = order_of(size);
    std::unique_ptr<Composition> composition =
        request_.order == DataOrder::keyed
            ? keyed_composition(source, range, order)
            : indexed_composition(source, index_of(*source, range, order, out.identity, who), order);
    out.set = std::make_shared<GptDataset>(std::move(source), std::move(composition), request_.rows);
    return out;
  }

  Order order_of(Asked size) const {
    Order order{.sequence_length = request_.rows.sequence_length, .num_samples = size, .seed = request_.seed};
    order.extra_token = request_.rows.extra_token;
    if (split_ == Split::valid) order.last = request_.last_valid;
    return order;
  }

  Identity identity_of(const Source& source, Asked size) const {
    Identity identity{.num_samples = size, .split = split_, .seed = request_.seed};
    if (request_.paths.mock) {
      identity.kind = "MockGPTDataset";
    } else {
      identity.path = source.name();
    }
    identity.sequence_length = request_.rows.sequence_length;
    identity.split_text = split_text_;
    identity.matrix = matrix_;
    identity.tokenizer = request_.tokenizer;
    return identity;
  }

  GptIndex index_of(const Source& source, Range range, const Order& order, const Identity& identity,
                    const std::string& who) const {
    const auto plan = [&] { return plan_epochs(count_tokens(source.lengths(), range, who), order, who); };
    if (request_.paths.mock && !request_.cache_path)
      return build_index(source.lengths(), range, order, plan());
    const IndexCache cache(request_.cache_path ? std::filesystem::path(*request_.cache_path)
                                               : default_cache_folder(source.name(), identity.kind),
                           identity);
    if (auto found = cache.find()) return std::move(*found);
    return cache.build(source.lengths(), range, order, plan());
  }

  const DataRequest& request_;
  Split split_;
  std::optional<std::string> split_text_;
  std::optional<SplitMatrix> matrix_;
  std::optional<Portion> portion_;
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

Datasets open_gpt_datasets(const DataRequest& request) {
  if (!request.paths.shared && !request.paths.mock && request.split) {
    fail(Kind::usage, "{data.split} ", *request.split,
         " is given together with paths for each split, which need none");
  }
  Datasets datasets;
  for (const Split split : splits)
    datasets.of[static_cast<std::size_t>(split)] = SplitOpener(request, split).open();
  return datasets;
}

}  // namespace weft::data
