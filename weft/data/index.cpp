// Building the three arrays of a GPT data set. The order of random draws is fixed: documents first, then
// samples.
#include "weft/data/index.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <limits>
#include <numeric>
#include <vector>

#include "weft/base/error.h"
#include "weft/data/numpy_random.h"

namespace weft::data {
namespace {

constexpr std::size_t block_rows = 32768;

std::int64_t extra(const Order& order) { return order.extra_token ? 1 : 0; }

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

std::int64_t rows_of(const Order& order, std::int64_t tokens) {
  const std::int64_t whole = tokens - extra(order);
  if (order.last == LastSample::dropped) return whole / order.sequence_length;
  // The original divides in single precision; so must we, to hold as many samples as it does.
  return static_cast<std::int64_t>(
      std::ceil(static_cast<float>(whole) / static_cast<float>(order.sequence_length)));
}

// Sizes of the two blocks that are shuffled by themselves; the second may be empty.
struct Blocks {
  std::size_t first, second;
};

Blocks document_blocks(Range range, const Epochs& epochs) {
  const auto n = static_cast<std::size_t>(range.size());
  const auto count = static_cast<std::size_t>(epochs.count);
  return epochs.separate_last ? Blocks{n * (count - 1), n} : Blocks{n * count, 0};
}

Blocks sample_blocks(const Epochs& epochs) {
  const auto n = static_cast<std::size_t>(epochs.samples);
  const auto before = static_cast<std::size_t>(epochs.samples_before_last);
  return epochs.separate_last ? Blocks{before, n - before} : Blocks{n, 0};
}

// The lengths of documents in shuffled order, fetched some hundreds at a time, so that many misses of the
// cache are under way at once.
class LengthsInOrder {
 public:
  LengthsInOrder(const Packed<std::int32_t>& lengths, std::span<const std::int32_t> documents)
      : lengths_(lengths), documents_(documents) {}
  std::int64_t operator[](std::size_t d) {
    if (d >= end_) fetch(d);
    return block_[d - begin_];
  }

 private:
  void fetch(std::size_t d) {
    begin_ = d;
    end_ = std::min(d + block_.size(), documents_.size());
    const std::size_t ahead = std::min(end_ + block_.size(), documents_.size());
    for (std::size_t i = end_; i < ahead; ++i) lengths_.prefetch(static_cast<std::size_t>(documents_[i]));
    for (std::size_t i = begin_; i < end_; ++i)
      block_[i - begin_] = lengths_[static_cast<std::size_t>(documents_[i])];
  }

  const Packed<std::int32_t>& lengths_;
  std::span<const std::int32_t> documents_;
  std::array<std::int32_t, 512> block_;
  std::size_t begin_ = 0, end_ = 0;
};

/// Of exactly so many epochs: that a run needs the last one, and that they are enough.
void check_exact(const Order& order, const Epochs& epochs, const std::string& who) {
  if (order.epochs == 0 || !order.num_samples) return;
  const std::int64_t samples = *order.num_samples;
  if (samples > epochs.samples)
    fail(Kind::usage, who, ": {data.exact_epochs} ", epochs.count, " gives ", epochs.samples,
         " samples, and ", samples, " are asked for: take more epochs, or shorten the run");
  if (samples < epochs.samples_before_last)
    fail(Kind::usage, who, ": {data.exact_epochs} ", epochs.count, ", and the ", samples,
         " samples that are asked for are in fewer, ", epochs.samples_before_last,
         " without the last: take fewer epochs");
}

}  // namespace

std::int64_t count_tokens(const Packed<std::int32_t>& lengths, Range range, const std::string& who) {
  std::int64_t sum = 0;
  bool negative = false;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const std::int32_t length = lengths[static_cast<std::size_t>(i)];
    sum += length;
    negative |= length < 0;
  }
  if (negative)
    fail(Kind::data, who, ": a sequence between ", range.begin, " and ", range.end,
         " has a length below 0; the index is damaged");
  return sum;
}

Epochs plan_epochs(std::int64_t tokens, const Order& order, const std::string& who) {
  const std::int64_t length = order.sequence_length;
  const std::int64_t x = extra(order);
  if (length < 1) fail(Kind::usage, who, ": a sequence length of ", length, ", expected at least 1");
  if (tokens < 1) fail(Kind::data, who, ": no tokens to make samples of");
  Epochs epochs{.tokens = tokens};
  if (order.epochs > std::numeric_limits<std::int64_t>::max() / tokens)
    fail(Kind::usage, who, ": {data.exact_epochs} ", order.epochs, " of ", tokens,
         " tokens are more than anybody can count");
  if (order.epochs > 0) {
    epochs.count = order.epochs;
  } else if (order.num_samples) {
    const std::int64_t samples = *order.num_samples;
    if (samples < 0 || samples > (std::numeric_limits<std::int64_t>::max() - 1) / length) {
      fail(Kind::usage, who, ": ", samples, " samples of ", length,
           " tokens asked for, which no data set has");
    }
    epochs.count = std::max<std::int64_t>(1, ceil_divide(samples * length + x, tokens));
  }
  epochs.samples = rows_of(order, epochs.count * tokens);
  if (epochs.samples < 1) {
    fail(Kind::data, who, ": ", tokens, " tokens, a sample takes ", length + x,
         "; shorten {model.sequence} or add data");
  }
  if (epochs.count > 1) epochs.samples_before_last = ((epochs.count - 1) * tokens - x) / length;
  check_exact(order, epochs, who);
  if (epochs.count == 1) return epochs;
  const std::int64_t from_last = order.num_samples.value_or(epochs.samples) - epochs.samples_before_last;
  const std::int64_t per_epoch = (tokens - x) / length;
  // Where less than four fifths of the last epoch is needed, that epoch waits until the others are read.
  epochs.separate_last = from_last < static_cast<std::int64_t>(0.80 * static_cast<double>(per_epoch));
  return epochs;
}

Array<std::int32_t> shuffled_documents(Range range, const Epochs& epochs, std::uint32_t seed) {
  NumpyRandom random(seed);
  const auto [first, second] = document_blocks(range, epochs);
  Array<std::int32_t> documents(first + second);
  const auto all = documents.writable();
  const auto n = static_cast<std::size_t>(range.size());
  for (std::size_t epoch = 0; epoch < all.size(); epoch += n) {
    const auto one = all.subspan(epoch, n);
    std::iota(one.begin(), one.end(), static_cast<std::int32_t>(range.begin));
  }
  random.shuffle(all.first(first));
  random.shuffle(all.subspan(first));
  return documents;
}

Array<std::uint32_t> shuffled_samples(Range range, const Epochs& epochs, std::uint32_t seed) {
  NumpyRandom random(seed);
  const auto documents = document_blocks(range, epochs);
  random.skip_shuffle(documents.first);
  random.skip_shuffle(documents.second);
  const auto [first, second] = sample_blocks(epochs);
  Array<std::uint32_t> samples(first + second);
  const auto all = samples.writable();
  std::iota(all.begin(), all.end(), 0U);
  random.shuffle(all.first(first));
  random.shuffle(all.subspan(first));
  return samples;
}

// Row r is where token r·S of the stream of documents lies; with the extra token a row that falls on a
// document's end stays on its last token. That is the original's loop, seen from the positions.
void cut_samples(const Packed<std::int32_t>& lengths, std::span<const std::int32_t> documents,
                 const Order& order, const Epochs& epochs, const PutRows& put) {
  std::vector<std::int32_t> rows = {0, 0};
  rows.reserve(block_rows * 2);
  LengthsInOrder length(lengths, documents);
  const std::int64_t x = extra(order);
  const auto last = static_cast<std::int64_t>(documents.size()) - 1;
  std::int64_t d = 0, begin = 0, end = length[0], position = 0;
  for (std::int64_t row = 1; row <= epochs.samples; ++row) {
    position += order.sequence_length;
    while (end < position + x && d < last) {
      begin = end;
      end += length[static_cast<std::size_t>(++d)];
    }
    rows.push_back(static_cast<std::int32_t>(d));
    rows.push_back(static_cast<std::int32_t>(std::min(position, end - x) - begin));
    if (rows.size() < 2 * block_rows) continue;
    put(rows);
    rows.clear();
  }
  put(rows);
}

void check_index_size(Range range, const Epochs& epochs) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (range.end > most || range.size() > most / epochs.count || epochs.samples > most) {
    fail(Kind::usage, "data: an index of ", range.size(), " documents, ", epochs.count, " epochs and ",
         epochs.samples, " samples, the most is ", most,
         " of each; use {data.index=keyed}, which needs no index");
  }
}

GptIndex build_index(const Packed<std::int32_t>& lengths, Range range, const Order& order,
                     const Epochs& epochs) {
  check_index_size(range, epochs);
  auto shuffle = std::async(std::launch::async, [&] { return shuffled_samples(range, epochs, order.seed); });
  GptIndex index;
  index.documents = shuffled_documents(range, epochs, order.seed);
  index.samples = Array<std::int32_t>(2 * static_cast<std::size_t>(epochs.samples + 1));
  auto rest = index.samples.writable();
  cut_samples(lengths, index.documents.values(), order, epochs, [&](std::span<const std::int32_t> rows) {
    std::copy(rows.begin(), rows.end(), rest.begin());
    rest = rest.subspan(rows.size());
  });
  index.shuffle = shuffle.get();
  return index;
}

}  // namespace weft::data
