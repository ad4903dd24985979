#include "weft/data/batch.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

namespace weft::data {
namespace {

class WholeBatches : public Dataset {
 public:
  WholeBatches(std::shared_ptr<const Dataset> dataset, std::int64_t batch)
      : dataset_(std::move(dataset)), size_((dataset_->size() + batch - 1) / batch * batch) {}
  std::int64_t size() const override { return size_; }
  void fill(std::int64_t i, Sample& into) const override {
    if (i < dataset_->size()) return dataset_->fill(i, into);
    dataset_->fill(0, into);
    std::ranges::fill(into[Field::loss_mask], 0);
    std::ranges::fill(into[Field::sentence_order], -1);
  }
  std::vector<Origin> origins(std::int64_t i) const override {
    return i < dataset_->size() ? dataset_->origins(i) : std::vector<Origin>{};
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::int64_t size_;
};

}  // namespace

std::shared_ptr<const Dataset> in_whole_batches(std::shared_ptr<const Dataset> dataset, std::int64_t batch) {
  if (dataset->size() == 0 || dataset->size() % batch == 0) return dataset;
  return std::make_shared<WholeBatches>(std::move(dataset), batch);
}

void collect(const Dataset& dataset, std::span<const std::int64_t> samples, Sample& sample,
             HostBatch& batch) {
  batch.samples.assign(samples.begin(), samples.end());
  for (auto& rows : batch.rows) rows.clear();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    dataset.fill(samples[i], sample);
    for (std::size_t f = 0; f < num_fields; ++f) {
      const auto& row = sample[static_cast<Field>(f)];
      auto& rows = batch.rows[f];
      if (i > 0 && rows.size() != i * row.size()) {
        fail(Kind::internal, "batch: ", name(static_cast<Field>(f)), " of sample ", samples[i], " has ",
             row.size(), " numbers, that of the samples before it ", rows.size() / i);
      }
      if (i == 0) rows.reserve(row.size() * samples.size());
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
}

}  // namespace weft::data
