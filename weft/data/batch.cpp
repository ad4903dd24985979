// Putting samples together, and copying them to a device.
#include "weft/data/batch.h"

#include "weft/base/error.h"
#include "weft/tensor/host.h"

namespace weft::data {

HostBatch collect(const Dataset& dataset, std::span<const std::int64_t> samples) {
  HostBatch batch;
  batch.samples.assign(samples.begin(), samples.end());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample sample = dataset.get(samples[i]);
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
  return batch;
}

Batch to_device(const HostBatch& host, Device& device) {
  Batch batch{.samples = host.samples, .fields = {}};
  for (std::size_t f = 0; f < num_fields; ++f) {
    const auto& rows = host.rows[f];
    if (rows.empty()) continue;
    const Shape shape{host.size(), static_cast<std::int64_t>(rows.size()) / host.size()};
    if (static_cast<Field>(f) == Field::loss_mask) {
      batch.fields[f] = from_host(device, shape, std::vector<float>(rows.begin(), rows.end()));
    } else {
      batch.fields[f] = from_host(device, shape, rows);
    }
  }
  return batch;
}

}  // namespace weft::data
