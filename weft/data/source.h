// Where tokens come from: a file, or a stand-in that needs none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/data/token_file.h"

namespace weft::data {

/// Sequences of tokens by number.
class Source {
 public:
  virtual ~Source() = default;
  virtual const std::string& name() const = 0;
  virtual Packed<std::int32_t> lengths() const = 0;
  virtual std::int64_t length(std::int64_t sequence) const = 0;
  virtual void read(std::int64_t sequence, std::int64_t from, std::span<std::int32_t> to) const = 0;
  /// Tokens before a sequence, where that is known without counting; needed for the keyed order.
  virtual std::int64_t tokens_before(std::int64_t sequence) const = 0;
  std::int64_t num_sequences() const { return static_cast<std::int64_t>(lengths().size()); }
};

std::shared_ptr<const Source> open_source(std::string prefix, TokenFile::Options options = {});
std::shared_ptr<const Source> source_of(std::shared_ptr<const TokenFile> file);

/// Megatron's mock data: 100,000 documents of 1 to 4095 tokens; each counts 1, 2, 3, … modulo the vocabulary
/// and ends with `eod`.
std::shared_ptr<const Source> mock_source(std::int32_t vocabulary, std::int32_t eod);

}  // namespace weft::data
