#include "weft/base/legal.h"

#include "weft/base/fields.h"

namespace weft {

std::string words(const Legal& legal) {
  const bool from = legal.least != Legal{}.least, to = legal.most != Legal{}.most;
  const auto end = [](double x) { return write_word(static_cast<std::int64_t>(x)); };
  const auto number = [&](double x) { return x == double(std::int64_t(x)) ? end(x) : write_word(x); };
  if (from && to) {
    const std::string first = legal.above ? "above " : "from ";
    return first + number(legal.least) + (legal.below ? " to below " : " to ") + number(legal.most);
  }
  if (from) return legal.above ? "above " + number(legal.least) : "of " + number(legal.least) + " or more";
  if (to) return (legal.below ? "below " : "of at most ") + number(legal.most);
  return "";
}

}  // namespace weft
