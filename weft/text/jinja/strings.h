// Python's texts by code points: what methods, filters and tests share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/text/jinja/work.h"

namespace weft::jinja {

/// The method of a text, or null.
[[nodiscard]] const Known* text_method(std::string_view name);

[[nodiscard]] std::int64_t length_of(std::string_view text);  // code points
[[nodiscard]] bool is_blank(char32_t code);                   // str.isspace
/// Without what stands at its ends: blanks, or any of `letters`.
struct Ends {
  bool left = true, right = true;
};
[[nodiscard]] std::string_view stripped(std::string_view text, const std::optional<std::string>& letters,
                                        Ends ends);
[[nodiscard]] std::vector<std::string> lines_of(std::string_view text, bool with_ends = false);
[[nodiscard]] std::string lower(std::string_view text);
[[nodiscard]] std::string upper(std::string_view text);
[[nodiscard]] std::string capitalized(std::string_view text);
[[nodiscard]] std::string titled(std::string_view text);   // a capital where letters begin: str.title
[[nodiscard]] std::string swapped(std::string_view text);  // capitals small, small ones capitals
[[nodiscard]] bool is_decimal(char32_t code);
/// Whether there are letters, and all are so.
[[nodiscard]] bool every(std::string_view text, bool (*wanted)(char32_t));
/// Whether there are letters with a case, and all have it: str.islower, str.isupper.
[[nodiscard]] bool all_lower(std::string_view text);
[[nodiscard]] bool all_upper(std::string_view text);
/// `count` below 0: all.
[[nodiscard]] std::string replaced(Work& work, std::string_view text, std::string_view old,
                                   std::string_view by, std::int64_t count);

}  // namespace weft::jinja
