// What Python's operators do.
#pragma once

#include <string_view>

#include "weft/text/jinja/work.h"

namespace weft::jinja {

/// + - * / // % **
Value binary(Work& work, std::string_view sign, const Value& a, const Value& b);
/// == != < <= > >= in, not in
bool compares(Work& work, std::string_view sign, const Value& a, const Value& b);
bool contains(Work& work, const Value& in, const Value& what);
Value negative(Work& work, const Value& value);
/// Two texts as one; where one is markup, the other is escaped.
Value text_sum(Work& work, const Text& a, const Text& b);
[[nodiscard]] std::string escaped(std::string_view text);
/// "%s and %d" % (a, b), also of {"name": value}.
Value percent(Work& work, std::string_view pattern, const Arguments& given);
/// "{} {name} {0}".format(…)
Value braces(Work& work, std::string_view pattern, const Arguments& given);

}  // namespace weft::jinja
