// The order of every draw is DeepSpeedDataSampler's, and so is which samples come twice.
#include "weft/data/difficulty_clusters.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "weft/base/error.h"

namespace weft::data {
namespace {

void add(const NumberRows& rows, std::int64_t row, std::pair<std::int64_t, std::int64_t> part,
         std::vector<std::uint32_t>& into) {
  for (std::int64_t i = part.first; i < part.second; ++i) into.push_back(std::uint32_t(rows.at(row, i)));
}

void check_numbers(const NumberRows& rows, std::int64_t samples) {
  for (std::int64_t row = 0; row < rows.size(); ++row)
    for (std::int64_t i = 0; i < rows.length(row); ++i)
      if (const std::int64_t number = rows.at(row, i); number < 0 || number >= samples)
        fail(Kind::data, rows.prefix(), ": names sample ", number, ", and an epoch of the training set has ",
             samples, ": the index was made of other data, another length of samples, split or seed");
}

void check_values(const NumberRows& samples, const NumberRows& values) {
  if (values.size() != samples.size())
    fail(Kind::data, values.prefix(), ": ", values.size(), " values, and ", samples.prefix(), " has ",
         samples.size(), " rows of samples: they are not of one run");
  for (std::int64_t row = 0; row < values.size(); ++row)
    if (values.length(row) != 1)
      fail(Kind::data, values.prefix(), ": row ", row, " has ", values.length(row), " values, expected one");
}

}  // namespace

OpenMetric::OpenMetric(const DifficultyMetric& m) : metric(m), difficulties(m.rule) {
  if (m.clusters == Clustering::single_cluster) return;
  samples.emplace(m.samples);
  if (m.by == DifficultyBy::percentile) return;
  values.emplace(m.values);
  check_values(*samples, *values);
}

std::vector<std::uint32_t> OpenMetric::between(std::optional<std::int64_t> before, std::int64_t now) const {
  return metric.by == DifficultyBy::value ? by_value(before, now) : by_share(before.value_or(0), now);
}

std::vector<std::uint32_t> OpenMetric::by_value(std::optional<std::int64_t> before, std::int64_t now) const {
  std::vector<std::uint32_t> out;
  for (std::int64_t row = 0; row < samples->size(); ++row) {
    const std::int64_t value = values->at(row, 0);
    if (value <= now && (!before || value > *before)) add(*samples, row, {0, samples->length(row)}, out);
  }
  return out;
}

// A part of the samples is rounded down, and the last one takes what is left.
std::vector<std::uint32_t> OpenMetric::by_share(std::int64_t before, std::int64_t now) const {
  const std::int64_t all = samples->total(), each = all / metric.rule.most;
  const std::int64_t begin = each * before, end = now == metric.rule.most ? all : each * now;
  std::vector<std::uint32_t> out;
  std::int64_t counted = 0;
  for (std::int64_t row = 0; row < samples->size() && counted < end; ++row) {
    const std::int64_t length = samples->length(row);
    if (counted + length > begin)
      add(*samples, row, {std::max<std::int64_t>(0, begin - counted), std::min(length, end - counted)}, out);
    counted += length;
  }
  return out;
}

DifficultyClusters::DifficultyClusters(std::vector<OpenMetric> metrics, std::int64_t samples,
                                       std::uint32_t seed)
    : metrics_(std::move(metrics)), samples_(samples), seed_(seed), random_(seed), now_(metrics_.size()) {
  if (samples_ < 1 || samples_ > std::numeric_limits<std::uint32_t>::max())
    fail(Kind::data, "samples by difficulty: an epoch has ", samples_, ", expected 1 to ",
         std::numeric_limits<std::uint32_t>::max());
  for (const OpenMetric& one : metrics_)
    if (one.samples) check_numbers(*one.samples, samples_);
}

void DifficultyClusters::begin_anew() {
  random_ = NumpyPcg64(seed_);
  step_ = 0;
  now_.assign(metrics_.size(), std::nullopt);
  clusters_.clear();
}

DifficultyClusters::Numbers DifficultyClusters::admitted_by_all() const {
  std::optional<Numbers> together;
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    if (!metrics_[i].samples) continue;
    Numbers of_one = metrics_[i].between(std::nullopt, *now_[i]);
    std::ranges::sort(of_one);
    if (!together) {
      together = std::move(of_one);
      continue;
    }
    Numbers both;
    std::ranges::set_intersection(*together, of_one, std::back_inserter(both));
    together = std::move(both);
  }
  for (const Cluster& cluster : clusters_) {
    Numbers known = cluster.samples, rest;
    std::ranges::sort(known);
    std::ranges::set_difference(*together, known, std::back_inserter(rest));
    together = std::move(rest);
  }
  return std::move(*together);
}

// One metric's samples are told by what it admitted before; those of several by what clusters hold.
DifficultyClusters::Numbers DifficultyClusters::admitted(
    const std::vector<std::optional<std::int64_t>>& before) const {
  const auto makes_clusters = [](const OpenMetric& one) { return one.samples.has_value(); };
  const auto many = std::ranges::count_if(metrics_, makes_clusters);
  if (many > 1) return admitted_by_all();
  if (many == 1) {
    const auto i = std::size_t(std::ranges::find_if(metrics_, makes_clusters) - metrics_.begin());
    return metrics_[i].between(before[i], *now_[i]);
  }
  Numbers all;
  if (clusters_.empty()) {
    all.resize(std::size_t(samples_));
    std::iota(all.begin(), all.end(), 0U);
  }
  return all;
}

void DifficultyClusters::admit(const std::vector<std::optional<std::int64_t>>& before) {
  Numbers anew = admitted(before);
  if (anew.empty()) return;
  random_.shuffle(std::span(anew));
  clusters_.push_back({std::move(anew)});
}

/// How many samples of the batch each cluster gives, by chance and by its size.
std::vector<std::int64_t> DifficultyClusters::shares_of(std::int64_t batch) {
  double all = 0, sum = 0;
  for (const Cluster& cluster : clusters_) all += double(cluster.samples.size());
  std::vector<double> up_to;
  for (const Cluster& cluster : clusters_) up_to.push_back(sum += double(cluster.samples.size()) / all);
  for (double& each : up_to) each /= sum;
  std::vector<std::int64_t> shares(clusters_.size());
  for (std::int64_t i = 0; i < batch; ++i)
    ++shares[std::size_t(std::ranges::upper_bound(up_to, random_.uniform()) - up_to.begin())];
  return shares;
}

void DifficultyClusters::take(Cluster& cluster, std::int64_t count, std::vector<std::int64_t>& into) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (cluster.at == cluster.samples.size()) {
      random_.shuffle(std::span(cluster.samples));
      cluster.at = 0;
    }
    into.push_back(cluster.samples[cluster.at++]);
  }
}

std::vector<std::int64_t> DifficultyClusters::next(std::int64_t batch) {
  ++step_;
  const auto before = now_;
  for (std::size_t i = 0; i < metrics_.size(); ++i) now_[i] = metrics_[i].difficulties.at(step_);
  if (now_ != before) admit(before);
  if (clusters_.empty())
    fail(Kind::data, "samples by difficulty: none is as easy as step ", step_,
         " asks: raise the least difficulty of the metrics");
  const std::vector<std::int64_t> shares = shares_of(batch);
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < clusters_.size(); ++i) take(clusters_[i], shares[i], out);
  random_.shuffle(std::span(out));
  return out;
}

}  // namespace weft::data
