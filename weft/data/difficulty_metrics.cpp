// Two passes over the samples: how often words occur, then what that makes of each sample. Threads take fixed
// parts, and what they add up are whole numbers.
#include "weft/data/difficulty_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/base/workers.h"
#include "weft/data/number_rows.h"

namespace weft::data {
namespace {

/// The tokens of samples that count, one sample after the other.
class Texts {
 public:
  explicit Texts(const Dataset& set) : set_(set) {}
  std::span<const std::int32_t> at(std::int64_t i) {
    set_.fill(i, sample_);
    const auto& tokens = sample_[Field::tokens];
    const auto& there = sample_[Field::encoder_mask];
    counting_.clear();
    for (std::size_t k = 0; k < tokens.size(); ++k)
      if (there.empty() || there[k] == 1) counting_.push_back(tokens[k]);
    if (there.empty()) counting_.push_back(sample_[Field::labels].back());
    return counting_;
  }

 private:
  const Dataset& set_;
  Sample sample_;
  std::vector<std::int32_t> counting_;
};

void count_tokens(std::span<const std::int32_t> tokens, std::int64_t sample,
                  std::vector<std::int64_t>& counts) {
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= std::ssize(counts))
      fail(Kind::data, "sample ", sample, " holds word ", token, ", and there are ", counts.size());
    ++counts[std::size_t(token)];
  }
}

std::vector<std::int64_t> frequencies(const DifficultyOf& of) {
  std::vector<std::int64_t> sum(std::size_t(of.words), 0);
  std::mutex mutex;
  Workers(of.threads - 1).parallel_for(of.set.size(), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> mine(sum.size(), 0);
    Texts texts(of.set);
    for (std::int64_t i = begin; i < end; ++i) count_tokens(texts.at(i), i, mine);
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += mine[i];
  });
  return sum;
}

std::vector<double> rarities(const DifficultyOf& of) {
  std::vector<std::int64_t> counts = frequencies(of);
  for (std::int64_t& count : counts) count = std::max<std::int64_t>(count, 1);
  const auto all = double(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  std::vector<double> out;
  for (const std::int64_t count : counts) out.push_back(-std::log(double(count) / all));
  return out;
}

/// Ten times the power of ten that no sum of rarities reaches.
std::int64_t weight_of_length(const DifficultyOf& of, const std::vector<double>& rarity) {
  const double most = double(of.sequence) * std::ranges::max(rarity);
  return std::int64_t(std::pow(10.0, std::ceil(std::log10(most)) + 1));
}

}  // namespace

std::vector<std::int64_t> difficulties(const DifficultyOf& of, Difficulty what) {
  std::vector<std::int64_t> out(std::size_t(of.set.size()), 0);
  const std::vector<double> rarity = what == Difficulty::seqlen ? std::vector<double>() : rarities(of);
  const std::int64_t each = what == Difficulty::seqlen_vocab_rarity
                                ? weight_of_length(of, rarity)
                                : std::int64_t(what == Difficulty::seqlen);
  Workers(of.threads - 1).parallel_for(of.set.size(), [&](std::int64_t begin, std::int64_t end) {
    Texts texts(of.set);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::span<const std::int32_t> tokens = texts.at(i);
      double rare = 0;
      if (!rarity.empty())
        for (const std::int32_t token : tokens) rare += rarity[std::size_t(token)];
      out[std::size_t(i)] = each * std::ssize(tokens) + std::int64_t(rare);
    }
  });
  return out;
}

void write_difficulty_index(const std::string& folder, const std::string& name,
                            std::span<const std::int64_t> of_samples) {
  if (of_samples.empty()) fail(Kind::data, "index of ", name, ": there are no samples");
  std::vector<std::int64_t> order(of_samples.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto value = [&](std::int64_t sample) { return of_samples[std::size_t(sample)]; };
  std::ranges::stable_sort(order, {}, value);
  RowsToWrite values, samples, merged, each;
  for (std::size_t from = 0, to = 0; from < order.size(); from = to) {
    while (to < order.size() && value(order[to]) == value(order[from])) ++to;
    samples.add(std::span(order).subspan(from, to - from));
    values.add(std::array{value(order[from])});
  }
  const std::size_t together = std::max<std::size_t>(1, samples.lengths.size() / 100);
  merged.numbers = order;
  for (std::size_t i = 0; i < samples.lengths.size(); ++i) {
    if (i % together == 0) merged.lengths.push_back(0);
    merged.lengths.back() += samples.lengths[i];
  }
  for (const std::int64_t one : of_samples) each.add(std::array{one});
  const NumberType of_values = number_type_for(values.numbers.front(), values.numbers.back()),
                   of_numbers = number_type_for(0, std::int64_t(of_samples.size()) - 1);
  const std::string here = text(folder, "/", name), prefix = text(here, "/", name);
  make_directories(here);
  write_number_rows(prefix + "_sample_to_metric", each, of_values, DocumentEnds::twice);
  write_number_rows(prefix + "_index_to_sample", samples, of_numbers, DocumentEnds::twice);
  write_number_rows(prefix + "_index_to_metric", values, of_values, DocumentEnds::twice);
  write_number_rows(prefix + "_index_to_sample_percentile_merged", merged, of_numbers);
}

}  // namespace weft::data
