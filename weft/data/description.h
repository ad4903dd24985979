// What a cached index is of, as the text whose MD5 names its files: Python's json.dumps(…, indent=4), to the
// byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/split.h"

namespace weft::data {

/// The shortest text that reads back as this number, as Python writes it: 0.969, 1.0, 1e-05.
std::string python_float(double value);

/// What identifies a data set beside its class. `tokenizer` is a JSON object, see tokenizer_identity.h.
struct Identity {
  std::string kind = "GPTDataset";
  std::optional<std::string> path = {};
  std::optional<std::int64_t> num_samples = {};
  Split split = Split::train;
  std::uint32_t seed = 1234;
  std::int64_t sequence_length = 0;
  std::optional<std::string> split_text = {};
  std::optional<SplitMatrix> matrix = {};
  std::string tokenizer = "{}";
  std::int64_t epochs = 0;  // exactly so many; 0: as many as the samples take, and nothing is said of them
  std::string more = "{}";  // a JSON object of keys that some kinds add at the end
};
std::string describe(const Identity& identity);

/// A blend's weights: fractions where a size is asked for, else the members' sizes.
struct BlendIdentity {
  std::vector<Identity> members;
  std::vector<double> fractions;
  std::vector<std::int64_t> sizes;
  std::optional<std::int64_t> size = {};
};
std::string describe(const BlendIdentity& identity);

}  // namespace weft::data
