#include "weft/data/keyed.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/random.h"

namespace weft::data {
namespace {

constexpr std::uint32_t rounds = 6;

std::uint64_t square_root_up(std::uint64_t n) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n)));
  while (root * root < n) ++root;
  return root;
}

std::uint64_t wide(const PhiloxCounter& words) { return (std::uint64_t{words[1]} << 32) | words[0]; }

// Streams of one seed: orders of samples are numbered by the first sequence of their range, blends stand
// apart.
constexpr std::uint64_t blend_stream = ~std::uint64_t{0};

class KeyedComposition : public Composition {
 public:
  KeyedComposition(std::shared_ptr<const Source> source, Range range, const Order& order)
      : source_(std::move(source)), range_(range), order_(order) {
    const std::int64_t tokens = source_->tokens_before(range.end) - source_->tokens_before(range.begin);
    Order one_epoch = order;
    one_epoch.num_samples.reset();
    one_epoch.epochs = 0;
    one_epoch.last = LastSample::dropped;
    per_epoch_ = plan_epochs(tokens, one_epoch, source_->name()).samples;
    slack_ = tokens - (order.extra_token ? 1 : 0) - per_epoch_ * order.sequence_length;
    if (order.epochs > 0 && order.num_samples.value_or(0) > size())
      fail(Kind::usage, source_->name(), ": {data.exact_epochs} ", order.epochs, " gives ", size(),
           " samples, and ", *order.num_samples, " are asked for: take more epochs, or shorten the run");
  }

  std::int64_t size() const override {
    return order_.epochs > 0 ? order_.epochs * per_epoch_ : order_.num_samples.value_or(per_epoch_);
  }

  void pieces(std::int64_t i, std::vector<Piece>& into) const override {
    const auto epoch = static_cast<std::uint64_t>(i / per_epoch_);
    const auto stream = static_cast<std::uint64_t>(range_.begin);
    const KeyedPermutation order(static_cast<std::uint64_t>(per_epoch_), {order_.seed, stream, epoch});
    const auto sample = static_cast<std::int64_t>(order(static_cast<std::uint64_t>(i % per_epoch_)));
    // Where an epoch's first sample begins, in the tokens that whole samples leave over.
    const Draw draw(
        {.seed = order_.seed, .purpose = Purpose::data, .step = epoch, .sample = stream, .layer = 1});
    const auto shift =
        static_cast<std::int64_t>(wide(draw.block(0)) % static_cast<std::uint64_t>(slack_ + 1));
    cut(source_->tokens_before(range_.begin) + shift + sample * order_.sequence_length,
        order_.sequence_length + (order_.extra_token ? 1 : 0), into);
  }

 private:
  // The sequences that hold tokens [position, position + count) of the file.
  void cut(std::int64_t position, std::int64_t count, std::vector<Piece>& into) const {
    std::int64_t low = range_.begin,
                 high = range_.end;  // the last sequence that begins at or before the position
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (source_->tokens_before(middle) <= position ? low : high) = middle;
    }
    std::int64_t from = position - source_->tokens_before(low);
    for (std::int64_t sequence = low; count > 0; ++sequence, from = 0) {
      const std::int64_t length = sequence < range_.end ? source_->length(sequence) : -1;
      if (from < 0 || from > length) {
        fail(Kind::data, source_->name(), ": token ", position, " is not in sequence ", sequence,
             ", where the index puts it; the index is damaged");
      }
      const std::int64_t part = std::min(count, length - from);
      if (part > 0) into.push_back({sequence, from, part});
      count -= part;
    }
  }

  std::shared_ptr<const Source> source_;
  Range range_;
  Order order_;
  std::int64_t per_epoch_ = 0;
  std::int64_t slack_ = 0;
};

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t size, const Key& key)
    : size_(size),
      width_(square_root_up(size)),
      height_(size == 0 ? 0 : (size + width_ - 1) / width_),
      key_(key) {
  if (size == 0 || size > (std::uint64_t{1} << 62))
    fail(Kind::internal, "keyed order: of ", size, " elements");
}

std::uint64_t KeyedPermutation::mixed(std::uint64_t place) const {
  std::uint64_t x = place % width_;
  std::uint64_t y = place / width_;
  const Draw draw({.seed = key_.seed, .purpose = Purpose::data, .step = key_.epoch, .sample = key_.stream});
  for (std::uint32_t round = 0; round < rounds; ++round) {
    // Sides stay below 2^31, so a round's number fits above them.
    x = (x + wide(draw.block((std::uint64_t{2 * round} << 32) | y)) % width_) % width_;
    y = (y + wide(draw.block((std::uint64_t{2 * round + 1} << 32) | x)) % height_) % height_;
  }
  return y * width_ + x;
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t i) const {
  do {
    i = mixed(i);
  } while (i >= size_);
  return i;
}

std::unique_ptr<Composition> keyed_composition(std::shared_ptr<const Source> source, Range range,
                                               const Order& order) {
  if (order.last == LastSample::kept) {
    fail(Kind::usage,
         "{data.index=keyed}: every sample is whole; {data.partial_validation} needs "
         "{data.index=stored}");
  }
  return std::make_unique<KeyedComposition>(std::move(source), range, order);
}

std::vector<std::int64_t> KeyedBlend::places(std::span<const double> weights) {
  if (weights.empty() || weights.size() > 32766)
    fail(Kind::usage, "blend: ", weights.size(), " data sets, expected 1 to 32766");
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> counts;
  std::vector<std::pair<double, std::size_t>> rest;  // what rounding down took, and from whom
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double exact = weights[i] / sum * static_cast<double>(block);
    counts.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(exact)));
    rest.emplace_back(static_cast<double>(counts.back()) - exact, i);
  }
  std::sort(rest.begin(), rest.end());
  std::int64_t left = block - std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  for (std::size_t k = 0; left > 0; k = (k + 1) % rest.size(), --left) ++counts[rest[k].second];
  // Members that were lifted to one place take it from the largest ones.
  for (; left < 0; ++left) --*std::max_element(counts.begin(), counts.end());
  return counts;
}

std::int64_t KeyedBlend::needed(std::int64_t places_of_member, std::int64_t size) {
  return (size + block - 1) / block * places_of_member;
}

KeyedBlend::KeyedBlend(std::vector<std::shared_ptr<const Dataset>> members, std::span<const double> weights,
                       std::int64_t size, std::uint64_t seed)
    : members_(std::move(members)), ends_(places(weights)), size_(size), seed_(seed) {
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
}

KeyedBlend::MemberSample KeyedBlend::at(std::int64_t i) const {
  if (i < 0 || i >= size_) fail(Kind::data, "blend: sample ", i, " asked for, there are ", size_);
  const std::int64_t number = i / block;
  const KeyedPermutation order(static_cast<std::uint64_t>(block),
                               {seed_, blend_stream, static_cast<std::uint64_t>(number)});
  const auto place = static_cast<std::int64_t>(order(static_cast<std::uint64_t>(i % block)));
  const auto member =
      static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), place) - ends_.begin());
  const std::int64_t begin = member == 0 ? 0 : ends_[member - 1];
  return {*members_[member], number * (ends_[member] - begin) + place - begin};
}

void KeyedBlend::fill(std::int64_t i, Sample& into) const {
  const MemberSample place = at(i);
  place.member.fill(place.sample, into);
}

std::vector<Origin> KeyedBlend::origins(std::int64_t i) const {
  const MemberSample place = at(i);
  return place.member.origins(place.sample);
}

}  // namespace weft::data
