// Blending, in the order of double operations that decides which data set comes next.
#include "weft/data/blend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/data/cache_file.h"
#include "weft/data/md5.h"
#include "weft/data/npy.h"

namespace weft::data {
namespace {

void check_count(std::size_t datasets) {
  if (datasets >= 32767) fail(Kind::usage, "blend: ", datasets, " data sets, the most is 32766");
}

// The data set whose weight times the place is furthest ahead of what it has given; the first one on a tie.
std::size_t furthest_behind(std::span<const double> weights, std::span<const std::int64_t> given,
                            std::span<const std::size_t> candidates, double place) {
  std::size_t best = candidates.front();
  double most = weights[best] * place - static_cast<double>(given[best]);
  for (const std::size_t i : candidates.subspan(1)) {
    const double behind = weights[i] * place - static_cast<double>(given[i]);
    if (behind > most) {
      most = behind;
      best = i;
    }
  }
  return best;
}

std::filesystem::path blend_path(const std::filesystem::path& folder, const BlendIdentity& identity,
                                 const char* ending) {
  return folder / text(md5_hex(describe(identity)), "-BlendedDataset-", name(identity.members.front().split),
                       '-', ending);
}

}  // namespace

double numpy_sum(std::span<const double> a) {
  if (a.size() < 8) return std::accumulate(a.begin(), a.end(), 0.0);
  if (a.size() > 128) {
    const std::size_t half = a.size() / 2 / 8 * 8;
    return numpy_sum(a.first(half)) + numpy_sum(a.subspan(half));
  }
  std::array<double, 8> r;
  std::copy_n(a.begin(), 8, r.begin());
  std::size_t i = 8;
  for (; i + 8 <= a.size(); i += 8)
    for (std::size_t k = 0; k < 8; ++k) r[k] += a[i + k];
  const double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  return std::accumulate(a.begin() + static_cast<std::ptrdiff_t>(i), a.end(), sum);
}

std::vector<double> normalized(std::span<const double> weights) {
  const double sum = numpy_sum(weights);
  std::vector<double> out(weights.begin(), weights.end());
  for (double& w : out) w /= sum;
  return out;
}

std::vector<Share> shares(std::span<const double> weights, std::int64_t size, Surplus surplus) {
  std::vector<Share> out;
  for (const double w : weights) {
    const double part = static_cast<double>(size) * w;
    if (surplus == Surplus::size) {
      const auto count = static_cast<std::int64_t>(std::ceil(part * 1.005));
      out.push_back({count, count});
    } else {
      out.push_back({static_cast<std::int64_t>(std::ceil(std::ceil(part) * 1.0)),
                     static_cast<std::int64_t>(std::ceil(std::ceil(part) * 1.005))});
    }
  }
  return out;
}

BlendIndex blend_index(std::span<const double> weights, std::int64_t size) {
  check_count(weights.size());
  const auto n = static_cast<std::size_t>(size);
  BlendIndex index{Array<std::int16_t>(n), Array<std::int64_t>(n)};
  const auto datasets = index.datasets.writable();
  const auto samples = index.samples.writable();
  std::vector<std::int64_t> given(weights.size(), 0);
  std::vector<std::size_t> all(weights.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (std::size_t s = 0; s < n; ++s) {
    const std::size_t best = furthest_behind(weights, given, all, std::max(static_cast<double>(s), 1.0));
    datasets[s] = static_cast<std::int16_t>(best);
    samples[s] = given[best]++;
  }
  return index;
}

BlendIndex exhaustive_index(std::span<const std::int64_t> sizes) {
  check_count(sizes.size());
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const auto n = static_cast<std::size_t>(total);
  std::vector<double> weights;
  for (const std::int64_t size : sizes)
    weights.push_back(static_cast<double>(size) / static_cast<double>(total));
  BlendIndex index{Array<std::int16_t>(n), Array<std::int64_t>(n)};
  const auto datasets = index.datasets.writable();
  const auto samples = index.samples.writable();
  std::vector<std::int64_t> given(sizes.size(), 0);
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 0) left.push_back(i);
  for (std::size_t s = 0; s < n; ++s) {
    const std::size_t best = furthest_behind(weights, given, left, std::max(static_cast<double>(s), 1.0));
    datasets[s] = static_cast<std::int16_t>(best);
    samples[s] = given[best]++;
    if (given[best] == sizes[best]) std::erase(left, best);
  }
  return index;
}

std::optional<BlendIndex> find_blend(const std::filesystem::path& folder, const BlendIdentity& identity) {
  const auto datasets = blend_path(folder, identity, "dataset_index.npy");
  const auto samples = blend_path(folder, identity, "dataset_sample_index.npy");
  for (const auto& path : {datasets, samples, blend_path(folder, identity, "description.txt")})
    if (!std::filesystem::exists(path)) return std::nullopt;
  BlendIndex index{read_npy<std::int16_t>(datasets), read_npy<std::int64_t>(samples)};
  if (index.datasets.size() != index.samples.size()) {
    fail(Kind::data, samples.string(), ": ", index.samples.size(), " numbers for ", index.datasets.size(),
         " samples; remove the cache");
  }
  return index;
}

void store_blend(const std::filesystem::path& folder, const BlendIdentity& identity,
                 const BlendIndex& index) {
  make_cache_folder(folder);
  write_npy(blend_path(folder, identity, "dataset_index.npy"), index.datasets.values());
  write_npy(blend_path(folder, identity, "dataset_sample_index.npy"), index.samples.values());
  write_cache_file(blend_path(folder, identity, "description.txt"), std::string_view(describe(identity)));
}

Blend::Blend(std::vector<std::shared_ptr<const Dataset>> members, BlendIndex index)
    : members_(std::move(members)), index_(std::move(index)) {}

Blend::MemberSample Blend::at(std::int64_t i) const {
  if (i < 0 || i >= size()) fail(Kind::data, "blend: sample ", i, " asked for, there are ", size());
  const auto member = static_cast<std::size_t>(index_.datasets[static_cast<std::size_t>(i)]);
  const std::int64_t sample = index_.samples[static_cast<std::size_t>(i)];
  if (member >= members_.size())
    fail(Kind::data, "blend: sample ", i, " is of data set ", member, " of ", members_.size(),
         "; remove the cache");
  if (sample < 0 || sample >= members_[member]->size()) {
    fail(Kind::data, "blend: sample ", sample, " of data set ", member, " asked for, there are ",
         members_[member]->size(), "; the weights drew more than its share");
  }
  return {*members_[member], sample};
}

void Blend::fill(std::int64_t i, Sample& into) const {
  const MemberSample place = at(i);
  place.member.fill(place.sample, into);
}

std::vector<Origin> Blend::origins(std::int64_t i) const {
  const MemberSample place = at(i);
  return place.member.origins(place.sample);
}

}  // namespace weft::data
