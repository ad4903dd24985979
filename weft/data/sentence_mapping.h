// Which sentences make a sample of BERT's or T5's: consecutive ones of a document, up to a target length that
// is sometimes short.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weft/data/array.h"
#include "weft/data/split.h"
#include "weft/data/token_file.h"

namespace weft::data {

struct MappingRules {
  std::int64_t max_length = 0;                   // tokens of a sample
  std::optional<std::int64_t> num_samples = {};  // nothing: one epoch
  std::int64_t epochs = 0;  // exactly so many, whatever samples they give; 0: as many as the samples take
  double short_probability = 0.1;  // how often the target is a random shorter one
  std::uint32_t seed = 1234;
  int min_sentences = 1;
};

/// Rows of three: first sentence, the one behind the last, target length. For the documents of `range`;
/// Megatron's rows in its order.
Array<std::uint32_t> build_mapping(const Packed<std::int64_t>& documents, Range range,
                                   const Packed<std::int32_t>& lengths, const MappingRules& rules,
                                   const std::string& who);

/// Refuses rows, read from files, that the rules would not give of these documents, as the first of them show
/// it: they lie all over the data, as they are shuffled. `who` names the data and the files.
void check_mapping(std::span<const std::uint32_t> rows, const Packed<std::int64_t>& documents,
                   const Packed<std::int32_t>& lengths, const MappingRules& rules, const std::string& who);

}  // namespace weft::data
