// One microbatch as layers read it: tensors on the rank's device, whatever the family of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/tensor/host.h"

namespace weft {

/// What one stack of layers reads, sequence first, like everything between layers. s counts the steps held
/// here: a context-parallel rank holds its own part of every sequence.
struct Sequences {
  Tensor tokens;     // i32 [s, b]
  Tensor places;     // i32 [s]: the global place in the sequence of every step held here
  Tensor positions;  // i32 [s, b]: position ids, which start again at a document where that is asked for
  Tensor types;      // i32 [s, b]: token types, where a model has them
  Tensor segments;   // i32 [b, s]: steps see each other where these are equal and not negative: documents,
                     // and padding, which is -1; empty where all see all
  bool restarted = false;  // positions differ from places
};

/// Which of a batch's sequences a stack of layers reads.
enum class Side : std::uint8_t {
  text,    // the only one, or the decoder's
  source,  // the encoder's, where there is a decoder too
};

/// So many tokens beyond the next one may be guessed.
inline constexpr std::size_t most_ahead = 4;

/// The tokens that count in a loss, where no sample may have more of them than a number far below its length:
/// by their places among all s b held here, and where a batch has fewer, some that do not count.
struct Guesses {
  Tensor rows;     // i32 [n]: i b + sample
  Tensor targets;  // i32 [n]
  Tensor mask;     // f32 [n]
};

/// What a guess reads and is measured by so many places on. Where a text ends there are zeros, and nothing
/// counts.
struct Further {
  Tensor tokens, positions;  // i32 [s, b], as the text's
  Tensor targets, mask;      // as the batch's
  double counted = 0;        // so many tokens of whole sequences do, where the host knows it
};

struct Batch {
  Sequences text, source;
  Tensor targets;   // i32 [s, b], of the text; any id where the mask is zero
  Tensor mask;      // f32 [s, b]; 1 where a token counts in the loss
  Guesses guesses;  // the same once more; empty where any may count
  /// So many tokens of whole sequences do, where the host knows it; else a step asks the device, and waits.
  std::optional<double> counted;
  std::vector<Further> further;  // one place on, and so forth, where tokens beyond the next are guessed
  Tensor sentence_order;         // i32 [b]: 1 where two sentences were swapped
  Tensor sentence_mask;          // f32 [b]: 1 where that counts in the loss
  Tensor samples;  // i64 [b]: the global number of every sample, which addresses its random numbers
  /// The same, for layers that draw on the host: asking the device would be a wait.
  std::vector<std::int64_t> sample_numbers;

  const Sequences& of(Side side) const { return side == Side::text ? text : source; }
  void hold_samples(Device& device, const std::vector<std::int64_t>& numbers) {
    samples = from_host(device, {std::int64_t(numbers.size())}, numbers);
    sample_numbers = numbers;  // in the memory of the batch before, where there was one
  }
};

}  // namespace weft
