// Which documents a GPT sample is made of, and in which order samples come: documents → samples → shuffled
// samples. Pure and seeded; the arrays are Megatron's, number by number.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "weft/data/array.h"
#include "weft/data/split.h"
#include "weft/data/token_file.h"

namespace weft::data {

enum class LastSample { dropped, kept };  // a last sample shorter than a sequence

/// What the order depends on beside the lengths of the documents.
struct Order {
  std::int64_t sequence_length = 0;
  std::optional<std::int64_t> num_samples = {};  // nothing: one epoch
  std::int64_t epochs = 0;                       // exactly so many; 0: as many as the samples take
  std::uint32_t seed = 1234;
  bool extra_token =
      true;  // a sample holds one token more than a sequence, so that labels are tokens moved by one
  LastSample last = LastSample::dropped;
};

/// How often the documents are walked through.
struct Epochs {
  std::int64_t tokens = 0;  // of one epoch
  std::int64_t count = 1;
  std::int64_t samples_before_last = 0;
  std::int64_t samples = 0;    // of all epochs
  bool separate_last = false;  // the last epoch is shuffled by itself, because little of it is asked for
};
/// `who` is said in messages. Refuses an order that no number of epochs can fill.
Epochs plan_epochs(std::int64_t tokens, const Order& order, const std::string& who);

struct GptIndex {
  Array<std::int32_t> documents;  // sequences, shuffled, epoch after epoch
  Array<std::int32_t> samples;   // pairs: where in `documents` a sample begins, and at which token there; one
                                 // pair more than samples
  Array<std::uint32_t> shuffle;  // the samples in the order they are read
};

/// The sum of the lengths of sequences in a range; refuses negative ones.
std::int64_t count_tokens(const Packed<std::int32_t>& lengths, Range range, const std::string& who);
/// For the sequences of `range`. Uses two threads.
GptIndex build_index(const Packed<std::int32_t>& lengths, Range range, const Order& order,
                     const Epochs& epochs);

/// The parts of it, for who does not want all of them in memory at once. Each begins with a generator of the
/// seed.
Array<std::int32_t> shuffled_documents(Range range, const Epochs& epochs, std::uint32_t seed);
Array<std::uint32_t> shuffled_samples(Range range, const Epochs& epochs, std::uint32_t seed);
/// Calls put() with pairs of `samples`, some thousands at a time.
using PutRows = std::function<void(std::span<const std::int32_t>)>;
void cut_samples(const Packed<std::int32_t>& lengths, std::span<const std::int32_t> documents,
                 const Order& order, const Epochs& epochs, const PutRows& put);
/// Refuses an index that the format cannot hold.
void check_index_size(Range range, const Epochs& epochs);

}  // namespace weft::data
