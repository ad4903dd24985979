// GPT's data set of one prefix: its index cached or built, or in the keyed order, which needs none.
#include <utility>

#include "weft/base/error.h"
#include "weft/data/fitting.h"
#include "weft/data/index_cache.h"
#include "weft/data/keyed.h"
#include "weft/data/open.h"

namespace weft::data {
namespace {

class GptMembers final : public Members {
 public:
  GptMembers(const DataRequest& request, const GptRows& rows, Portions portions)
      : request_(request), rows_(rows), portions_(std::move(portions)) {}

  Member of(const std::string& prefix, SamplesWanted size) const override {
    return member(open_file(prefix), size);
  }
  Member made_up(SamplesWanted size) const override {
    return member(mock_source(request_.mock_vocabulary, rows_.eod), size);
  }

 private:
  std::shared_ptr<const Source> open_file(const std::string& prefix) const {
    const auto file =
        std::make_shared<const TokenFile>(prefix, TokenFile::Options{.access = request_.access});
    check_vocabulary(*file, rows_.vocabulary);
    return source_of(file);
  }

  Member member(std::shared_ptr<const Source> source, SamplesWanted size) const {
    const std::string who = text(source->name(), ' ', name(portions_.split));
    const Range range = documents_of(portions_, source->num_sequences(), who, size);
    Member out{nullptr, identity_of(*source, size)};
    const Order order = order_of(size);
    auto composition = request_.order == DataOrder::keyed
                           ? keyed_composition(source, range, order)
                           : stored_composition(source, range, order, out.identity, who);
    out.set = std::make_shared<GptDataset>(std::move(source), std::move(composition), rows_);
    return out;
  }

  Order order_of(SamplesWanted size) const {
    Order order{.sequence_length = rows_.sequence_length, .num_samples = size, .seed = request_.seed};
    order.extra_token = rows_.extra_token;
    if (portions_.split == Split::train) order.epochs = request_.exact_epochs;
    if (portions_.split == Split::valid) order.last = request_.last_valid;
    return order;
  }

  Identity identity_of(const Source& source, SamplesWanted size) const {
    Identity identity{.num_samples = size, .split = portions_.split, .seed = request_.seed};
    if (request_.paths.mock) {
      identity.kind = "MockGPTDataset";
    } else {
      identity.path = source.name();
    }
    identity.sequence_length = rows_.sequence_length;
    if (portions_.split == Split::train) identity.epochs = request_.exact_epochs;
    identity.split_text = portions_.text;
    identity.matrix = portions_.matrix;
    identity.tokenizer = request_.tokenizer;
    return identity;
  }

  std::unique_ptr<Composition> stored_composition(const std::shared_ptr<const Source>& source, Range range,
                                                  const Order& order, const Identity& identity,
                                                  const std::string& who) const {
    const Packed<std::int32_t> lengths = source->lengths();
    const auto plan = [&] { return plan_epochs(count_tokens(lengths, range, who), order, who); };
    if (request_.paths.mock && !request_.cache_path)
      return indexed_composition(source, build_index(lengths, range, order, plan()), order);
    const IndexCache cache(request_.cache_path ? std::filesystem::path(*request_.cache_path)
                                               : default_cache_folder(source->name(), identity.kind),
                           identity);
    const std::string files = cache.path("*").string();
    auto found = cache.find();
    if (found) check_counts({*found, who, files}, range, identity.num_samples);
    auto composition = indexed_composition(
        source, found ? std::move(*found) : cache.build(lengths, range, order, plan()), order);
    check_first_samples(*composition, files);
    return composition;
  }

  const DataRequest& request_;
  const GptRows& rows_;
  Portions portions_;
};

}  // namespace

Datasets open_gpt_datasets(const DataRequest& request, const GptRows& rows) {
  return open_datasets(request, [&](const Portions& portions) {
    return std::make_unique<GptMembers>(request, rows, portions);
  });
}

}  // namespace weft::data
