// Reading JSON that people wrote: errors that say which file and where. Included by .cpp files only.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/text/bpe.h"
#include "weft/text/vocabulary.h"

namespace weft {

/// Throws "WHO: is not JSON: …".
[[nodiscard]] nlohmann::json parse_json(std::string_view text, std::string_view who);
/// {"token": id, …}
void read_vocabulary(const nlohmann::json& json, std::string_view who, Vocabulary& vocabulary);

/// Fields that must have a type where they are there.
[[nodiscard]] std::string text_field(const nlohmann::json& json, const char* key, std::string_view who);
[[nodiscard]] bool flag_field(const nlohmann::json& json, const char* key, bool otherwise,
                              std::string_view who);

/// Merges by name to merges by id, and tokens from the byte alphabet to bytes.
[[nodiscard]] BytePairParts byte_pair_parts(const Vocabulary& vocabulary,
                                            const std::vector<std::pair<std::string, std::string>>& merges);

}  // namespace weft
