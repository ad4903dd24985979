// Whether what lies on a disk fits together: data, the vocabulary that reads them, an index that was made of
// them.
#pragma once

#include <cstdint>
#include <string>

#include "weft/data/gpt_dataset.h"
#include "weft/data/index.h"
#include "weft/data/members.h"
#include "weft/data/token_file.h"

namespace weft::data {

/// Refuses u16 for a vocabulary beyond it, as tools take that type for smaller ones by themselves: the tokens
/// are another tokenizer's. Whoever took a narrower one, bytes say, chose it.
void check_vocabulary(const TokenFile& file, std::int64_t words);

/// An index that was read, and how it is called in messages.
struct FoundIndex {
  const GptIndex& index;
  std::string who, files;
};
/// Refuses an index of another number of documents than a whole number of epochs of `range`, or of too few
/// samples. An index keeps its name when data are made anew under theirs.
void check_counts(const FoundIndex& found, Range range, SamplesWanted wanted);
/// Refuses an index of other data, as the first of its samples show it: they lie all over the data, as they
/// are shuffled.
void check_first_samples(const Composition& composition, const std::string& files);

}  // namespace weft::data
