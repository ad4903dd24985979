// Building the rows, with the generators of the C++ library, as the original does.
#include "weft/data/sentence_mapping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "weft/base/error.h"

namespace weft::data {
namespace {

constexpr std::int32_t longest_sentence = 512;
constexpr std::int64_t most_epochs = std::numeric_limits<std::int32_t>::max() - 1;

class Mapper {
 public:
  Mapper(const Packed<std::int32_t>& lengths, const MappingRules& rules)
      : lengths_(lengths), rules_(rules), random_(rules.seed) {
    if (rules.short_probability > 0)
      ratio_ = static_cast<std::uint32_t>(std::round(1.0 / rules.short_probability));
  }

  void add_document(std::int64_t begin, std::int64_t end) {
    if (end - begin > 1 && has_long_sentence(begin, end)) return;
    if (end - begin < rules_.min_sentences) return;
    std::int64_t target = next_target(), start = begin, length = 0, count = 0, left = end - begin;
    for (std::int64_t s = begin; s < end; ++s) {
      length += lengths_[static_cast<std::size_t>(s)];
      ++count;
      --left;
      const bool full = length >= target && left > 1 && count >= rules_.min_sentences;
      if (!full && left != 0) continue;
      rows_.insert(rows_.end(), {static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(s + 1),
                                 static_cast<std::uint32_t>(target)});
      start = s + 1;
      length = count = 0;
      target = next_target();
    }
  }

  std::vector<std::uint32_t>& rows() { return rows_; }
  std::int64_t num_rows() const { return static_cast<std::int64_t>(rows_.size() / 3); }

 private:
  bool has_long_sentence(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t s = begin; s < end; ++s)
      if (lengths_[static_cast<std::size_t>(s)] > longest_sentence) return true;
    return false;
  }

  std::int64_t next_target() {
    if (ratio_ == 0) return rules_.max_length;
    const auto draw = static_cast<std::uint32_t>(random_());
    if (draw % ratio_ != 0) return rules_.max_length;
    return 2 + draw % static_cast<std::uint32_t>(rules_.max_length - 1);
  }

  const Packed<std::int32_t>& lengths_;
  const MappingRules& rules_;
  std::mt19937 random_;
  std::uint32_t ratio_ = 0;
  std::vector<std::uint32_t> rows_;
};

void check_lengths(const Packed<std::int64_t>& documents, Range range, const Packed<std::int32_t>& lengths,
                   const MappingRules& rules, const std::string& who) {
  if (rules.max_length < 2)
    fail(Kind::usage, who, ": samples of ", rules.max_length,
         " tokens, expected at least 2; lengthen {model.sequence}");
  if (rules.seed == 0) fail(Kind::usage, who, ": {run.seed} 0, expected one above 0");
  if (lengths.size() > std::numeric_limits<std::uint32_t>::max())
    fail(Kind::usage, who, ": ", lengths.size(), " sentences, the most is 4294967295");
  for (std::int64_t d = range.begin; d < range.end; ++d) {
    const std::int64_t begin = documents[static_cast<std::size_t>(d)],
                       end = documents[static_cast<std::size_t>(d) + 1];
    if (begin < 0 || end < begin || end > static_cast<std::int64_t>(lengths.size())) {
      fail(Kind::data, who, ": document ", d, " is the sentences from ", begin, " to ", end, " of ",
           lengths.size(), "; the index is damaged");
    }
  }
}

/// Outside of the range that was looked at they may begin anywhere, so no number is taken from another.
bool has_a_second_sentence(const Packed<std::int64_t>& documents, Range range) {
  for (std::int64_t d = range.begin; d < range.end; ++d)
    if (const std::int64_t begin = documents[static_cast<std::size_t>(d)],
        end = documents[static_cast<std::size_t>(d) + 1];
        end > begin && end - 1 > begin)
      return true;
  return false;
}

/// Where no document of the data has a second sentence they were never cut into any, and of each only as much
/// would be read as one sample takes. A small part of them, for tests say, may be of short documents alone.
void must_be_sentences(const Packed<std::int64_t>& documents, Range range,
                       const Packed<std::int32_t>& lengths, const MappingRules& rules,
                       const std::string& who) {
  if (has_a_second_sentence(documents, range)) return;
  std::int64_t tokens = 0;
  for (std::int64_t d = range.begin; d < range.end; ++d) {
    const auto begin = static_cast<std::size_t>(documents[static_cast<std::size_t>(d)]);
    const auto end = static_cast<std::size_t>(documents[static_cast<std::size_t>(d) + 1]);
    if (end > begin) tokens += lengths[begin];
  }
  if (has_a_second_sentence(documents, {0, static_cast<std::int64_t>(documents.size()) - 1})) return;
  if (tokens > 2 * rules.max_length * range.size())
    fail(Kind::data, who, ": each of ", range.size(), " documents is one sentence, of ",
         tokens / range.size(), " tokens in the mean, and a sample takes ", rules.max_length,
         ", so that most would never be read; was the data made with {split_sentences}?");
}

/// Whether a document of these data gives the sentences from begin to end as one sample.
bool is_sample(std::span<const std::uint32_t> row, const Packed<std::int64_t>& documents,
               const Packed<std::int32_t>& lengths, const MappingRules& rules) {
  const std::int64_t begin = row[0], end = row[1], target = row[2];
  if (end <= begin || end > static_cast<std::int64_t>(lengths.size()) || target > rules.max_length)
    return false;
  std::size_t low = 0, high = documents.size();  // of the bounds up to `begin`, the last one is wanted
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (documents[middle] <= begin ? low : high) = middle;
  }
  if (low + 1 == documents.size() || end > documents[low + 1]) return false;
  if (end == documents[low + 1]) return true;  // the rest of a document, however short
  std::int64_t length = 0;
  for (std::int64_t s = begin; s < end; ++s) length += lengths[static_cast<std::size_t>(s)];
  return length >= target && end - begin >= rules.min_sentences;
}

}  // namespace

void check_mapping(std::span<const std::uint32_t> rows, const Packed<std::int64_t>& documents,
                   const Packed<std::int32_t>& lengths, const MappingRules& rules, const std::string& who) {
  constexpr std::size_t enough = 64;
  constexpr const char* advice = "; was the data made anew? Remove those files and start again";
  const std::size_t count = rows.size() / 3;
  if (static_cast<std::int64_t>(count) < rules.num_samples.value_or(0))
    fail(Kind::data, who, " holds ", count, " samples, expected at least ", *rules.num_samples, advice);
  for (std::size_t i = 0; i < std::min(enough, count); ++i)
    if (!is_sample(rows.subspan(3 * i, 3), documents, lengths, rules))
      fail(Kind::data, who, " does not fit the data at sample ", i, advice);
}

Array<std::uint32_t> build_mapping(const Packed<std::int64_t>& documents, Range range,
                                   const Packed<std::int32_t>& lengths, const MappingRules& rules,
                                   const std::string& who) {
  check_lengths(documents, range, lengths, rules, who);
  must_be_sentences(documents, range, lengths, rules, who);
  Mapper mapper(lengths, rules);
  const bool exact = rules.epochs > 0;
  const std::int64_t epochs = exact ? rules.epochs : rules.num_samples ? most_epochs : 1;
  const std::int64_t wanted = exact ? std::numeric_limits<std::int64_t>::max()
                                    : rules.num_samples.value_or(std::numeric_limits<std::int64_t>::max());
  for (std::int64_t epoch = 0; epoch < epochs && mapper.num_rows() < wanted; ++epoch) {
    const std::int64_t before = mapper.num_rows();
    for (std::int64_t d = range.begin; d < range.end; ++d) {
      mapper.add_document(documents[static_cast<std::size_t>(d)], documents[static_cast<std::size_t>(d) + 1]);
    }
    if (mapper.num_rows() == before) {
      fail(Kind::data, who, ": none of ", range.size(), " documents gives a sample; each needs ",
           rules.min_sentences, " sentences at least, and none above ", longest_sentence,
           " tokens; was the data made with {split_sentences}?");
    }
  }
  if (exact && rules.num_samples.value_or(0) > mapper.num_rows())
    fail(Kind::usage, who, ": {data.exact_epochs} ", epochs, " gives ", mapper.num_rows(), " samples, and ",
         *rules.num_samples, " are asked for: take more epochs, or shorten the run");
  const auto& built = mapper.rows();
  Array<std::uint32_t> rows(built.size());
  const auto out = rows.writable();
  std::copy(built.begin(), built.end(), out.begin());
  std::mt19937_64 random(std::uint64_t{rules.seed} + 1);
  for (std::size_t i = built.size() / 3; i-- > 1;) {
    const std::size_t j = random() % (i + 1);
    std::swap_ranges(out.begin() + static_cast<std::ptrdiff_t>(3 * i),
                     out.begin() + static_cast<std::ptrdiff_t>(3 * i + 3),
                     out.begin() + static_cast<std::ptrdiff_t>(3 * j));
  }
  return rows;
}

}  // namespace weft::data
