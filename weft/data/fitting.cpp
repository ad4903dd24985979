#include "weft/data/fitting.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"

namespace weft::data {

void check_vocabulary(const TokenFile& file, std::int64_t words) {
  const std::int64_t highest = range(TokenType::u16).high;
  if (file.type() == TokenType::u16 && words - 1 > highest)
    fail(Kind::data, file.prefix(), ": tokens of type u16 hold ids up to ", highest, ", the vocabulary has ",
         words, "; the data was made with another tokenizer");
}

void check_counts(const FoundIndex& found, Range range, SamplesWanted wanted) {
  constexpr const char* advice = "; was the data made anew? Remove those files and start again";
  const auto documents = static_cast<std::int64_t>(found.index.documents.size());
  const auto samples = static_cast<std::int64_t>(found.index.shuffle.size());
  if (documents % range.size() != 0)
    fail(Kind::data, found.who, ": the index ", found.files, " holds ", documents,
         " documents, expected a multiple of the ", range.size(), " that there are", advice);
  if (samples < wanted.value_or(0))
    fail(Kind::data, found.who, ": the index ", found.files, " holds ", samples,
         " samples, expected at least ", *wanted, advice);
}

void check_first_samples(const Composition& composition, const std::string& files) {
  constexpr std::int64_t enough = 64;
  std::vector<Piece> pieces;
  try {
    for (std::int64_t i = 0; i < std::min(enough, composition.size()); ++i) {
      pieces.clear();
      composition.pieces(i, pieces);
    }
  } catch (const Error& e) {
    fail(e.kind(), e.what(), "; its files are ", files);
  }
}

}  // namespace weft::data
