// Samples of one microbatch, row under row.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/data/dataset.h"
#include "weft/data/sample.h"

namespace weft::data {

struct HostBatch {
  std::vector<std::int64_t> samples;  // their numbers in the run's order, which address random numbers
  std::array<std::vector<std::int32_t>, num_fields> rows;  // one sample behind the other

  std::vector<std::int32_t>& operator[](Field field) { return rows[static_cast<std::size_t>(field)]; }
  const std::vector<std::int32_t>& operator[](Field field) const {
    return rows[static_cast<std::size_t>(field)];
  }
  bool has(Field field) const { return !(*this)[field].empty(); }
  std::int64_t size() const { return static_cast<std::int64_t>(samples.size()); }
};

/// A data set that is a whole number of batches long: behind its last sample stand some whose loss counts
/// nowhere, so that a sum over all batches is a sum over its samples, whoever shares them.
std::shared_ptr<const Dataset> in_whole_batches(std::shared_ptr<const Dataset> dataset, std::int64_t batch);

/// Samples take the place of what the batch held, one read after the other into `sample`; the memory of both
/// is used again. Refuses samples whose rows differ in length.
void collect(const Dataset& dataset, std::span<const std::int64_t> samples, Sample& sample, HostBatch& batch);

}  // namespace weft::data
