// Vocabulary: the names of ids, both ways.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weft {

class Vocabulary {
 public:
  /// Ids lie below this whatever a file says, so that a lying id cannot ask for memory: four million, whose
  /// empty names take a quarter of a gibibyte.
  static constexpr std::int64_t most = std::int64_t{1} << 22;

  /// Names an id; a name given twice keeps the later id, an id given twice its later name. `who` begins the
  /// message where the id is negative or beyond `most`.
  void set(const std::string& token, std::int64_t id, std::string_view who);
  [[nodiscard]] std::optional<std::int32_t> id(std::string_view token) const;
  /// Empty for an id that names nothing.
  [[nodiscard]] const std::string& token(std::int32_t id) const;
  [[nodiscard]] bool names(std::int32_t id) const;
  /// One more than the largest id: every id can be looked up below this.
  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(tokens_.size()); }
  [[nodiscard]] const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::vector<std::string> tokens_;
  std::vector<bool> named_;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
  std::string nothing_;
};

}  // namespace weft
