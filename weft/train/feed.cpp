#include "weft/train/feed.h"

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"
#include "weft/tensor/host.h"
#include "weft/train/config.h"
#include "weft/train/replica.h"

namespace weft {

using data::Field;

namespace {

double sum_of(const std::vector<std::int32_t>& mask) {
  return std::accumulate(mask.begin(), mask.end(), 0.0);
}

}  // namespace

Feed::Intake place_of(const Replica& replica, const DataConfig& data) {
  const ProcessMesh& mesh = replica.mesh();
  return {.device = replica.device(),
          .fields = replica.kind().fields,
          .context = {mesh.place(Axis::cp), mesh.layout().degree(Axis::cp)},
          .most_guesses = replica.model().most_guesses,
          .one_by_one = sums_of(replica.model()).tree_of_sequences(),
          .ahead = {.depths = replica.model().ahead.depths,
                    .in_documents = data.between_documents || data.chat.on}};
}

Feed::Feed(std::shared_ptr<const data::Dataset> dataset, std::unique_ptr<data::Sampler> sampler,
           const Intake& place, std::int64_t consumed)
    : loader_(std::move(dataset), std::move(sampler), consumed),
      device_(place.device),
      fields_(place.fields),
      context_(place.context),
      most_guesses_(place.most_guesses),
      one_by_one_(place.one_by_one),
      ahead_(place.ahead) {}

std::span<const Batch> Feed::next(const data::SampleTurn& turn, const data::Excerpt& excerpt) {
  const std::span<const data::HostBatch> hosts = loader_.next(turn);
  std::size_t made = 0;
  for (const data::HostBatch& host : hosts) {
    const data::HostBatch& whole = excerpt_of(host, excerpt);
    const std::int64_t passes = one_by_one_ ? whole.size() : 1;
    batches_.resize(hosts.size() * std::size_t(passes));
    for (std::int64_t i = 0; i < passes; ++i) {
      if (passes > 1) data::take_row(whole, i, row_);
      make(batches_[made++], passes > 1 ? row_ : whole);
    }
  }
  return batches_;
}

void Feed::make(Batch& batch, const data::HostBatch& whole) {
  fill(batch, part_of(whole));
  batch.counted = sum_of(field_for(batch.mask, batch, whole));
  look_ahead(batch, whole);
}

const data::HostBatch& Feed::excerpt_of(const data::HostBatch& whole, const data::Excerpt& excerpt) {
  if (excerpt.length == 0) return whole;
  data::cut(whole, excerpt, excerpt_);
  return excerpt_;
}

const data::HostBatch& Feed::part_of(const data::HostBatch& whole) {
  if (context_.ranks == 1) return whole;
  data::context_split(whole, context_, part_);
  return part_;
}

// Rows [b][s] become [s, b].
template <class T>
Tensor Feed::turned(const std::vector<std::int32_t>& rows, std::int64_t b, std::vector<T>& scratch) {
  const auto s = std::int64_t(rows.size()) / b;
  scratch.resize(rows.size());
  for (std::int64_t row = 0; row < b; ++row)
    for (std::int64_t i = 0; i < s; ++i)
      scratch[std::size_t(i * b + row)] = T(rows[std::size_t(row * s + i)]);
  return from_host(device_, {s, b}, scratch);
}

Tensor Feed::tensor_of(const BatchField& field, const data::HostBatch& host) {
  if (field.may_lack && !host.has(field.from)) return {};
  const std::int64_t b = host.size();
  const std::vector<std::int32_t>& rows = host[field.from];
  switch (field.as) {
    case BatchField::As::ids:
      return turned(rows, b, scratch_);
    case BatchField::As::counts:
      return turned(rows, b, counts_);
    case BatchField::As::rows:
      return from_host(device_, {b, std::int64_t(rows.size()) / b}, rows);
    case BatchField::As::present:
      scratch_.clear();
      for (const std::int32_t there : rows) scratch_.push_back(there == 1 ? 0 : -1);
      return from_host(device_, {b, std::int64_t(rows.size()) / b}, scratch_);
    case BatchField::As::samples:
      return from_host(device_, {b}, rows);
    case BatchField::As::counted:
      counts_.clear();
      for (const std::int32_t number : rows) counts_.push_back(number >= 0 ? 1.F : 0.F);
      return from_host(device_, {b}, counts_);
  }
  return {};
}

/// The places of a stack's steps; they are its positions too, where samples say no others.
void Feed::place(Sequences& sequences, std::int64_t b) {
  const std::int64_t s = sequences.tokens.dim(0);
  scratch_.clear();
  for (std::int64_t i = 0; i < s; ++i) scratch_.push_back(std::int32_t(data::place_of(i, s, context_)));
  sequences.places = from_host(device_, {s}, scratch_);
  if (sequences.positions) return;
  positions_.clear();
  for (const std::int32_t place : scratch_) positions_.insert(positions_.end(), std::size_t(b), place);
  sequences.positions = from_host(device_, {s, b}, positions_);
}

void Feed::look_ahead(Batch& batch, const data::HostBatch& whole) {
  batch.further.resize(std::size_t(ahead_.depths));
  for (std::size_t k = 0; k < batch.further.size(); ++k) {
    data::look_ahead(whole, std::int64_t(k) + 1, ahead_.in_documents, further_);
    const data::HostBatch& mine = part_of(further_);
    const std::int64_t b = mine.size();
    batch.further[k] = {.tokens = turned(mine[Field::tokens], b, scratch_),
                        .positions = turned(mine[Field::positions], b, scratch_),
                        .targets = turned(mine[Field::labels], b, scratch_),
                        .mask = turned(mine[Field::loss_mask], b, counts_),
                        .counted = sum_of(further_[Field::loss_mask])};
  }
}

/// The field that a tensor of the batch is made of.
const std::vector<std::int32_t>& Feed::field_for(Tensor& tensor, Batch& batch,
                                                 const data::HostBatch& host) const {
  const auto field =
      std::ranges::find_if(fields_, [&](const BatchField& one) { return &one.to(batch) == &tensor; });
  if (field == fields_.end()) fail(Kind::internal, "feed: the family reads no targets, or counts none");
  return host[field->from];
}

/// As many of every batch, sequence first: what does not count fills up.
void Feed::gather_guesses(Batch& batch, const data::HostBatch& host) const {
  const std::vector<std::int32_t>& counts = field_for(batch.mask, batch, host);
  const std::vector<std::int32_t>& targets = field_for(batch.targets, batch, host);
  const std::int64_t b = host.size(), s = std::int64_t(counts.size()) / b;
  const auto most = std::size_t(b * std::min(most_guesses_, s));
  std::vector<std::int32_t> rows, guessed;
  std::int32_t other = 0;
  for (std::int64_t i = 0; i < s; ++i)
    for (std::int64_t row = 0; row < b; ++row) {
      const auto at = std::size_t(row * s + i);
      if (counts[at] == 0) {
        other = std::int32_t(i * b + row);
        continue;
      }
      rows.push_back(std::int32_t(i * b + row));
      guessed.push_back(targets[at]);
    }
  if (rows.size() > most)
    fail(Kind::internal, "feed: ", rows.size(), " tokens of ", b, " samples count, and ", most, " may");
  std::vector<float> mask(rows.size(), 1);
  mask.resize(most, 0);
  rows.resize(most, other);
  guessed.resize(most, 0);
  const auto n = std::int64_t(most);
  batch.guesses = {.rows = from_host(device_, {n}, rows),
                   .targets = from_host(device_, {n}, guessed),
                   .mask = from_host(device_, {n}, mask)};
}

void Feed::fill(Batch& batch, const data::HostBatch& host) {
  const std::int64_t b = host.size();
  for (const BatchField& field : fields_) field.to(batch) = tensor_of(field, host);
  batch.hold_samples(device_, host.samples);
  if (most_guesses_ > 0) gather_guesses(batch, host);
  if (batch.source.tokens) place(batch.source, b);
  Sequences& text = batch.text;
  if (!host.has(Field::positions)) text.positions = {};
  place(text, b);
  text.restarted = false;
  for (std::size_t i = 0; i < host[Field::positions].size() && !text.restarted; ++i)
    text.restarted = host[Field::positions][i] != scratch_[i % scratch_.size()];
}

}  // namespace weft
