// Random Unicode that looks for trouble: the code points on which patterns and normal forms turn, mixed with
// any other.
#pragma once

#include <rapidcheck.h>

#include <string>

#include "weft/text/unicode.h"

namespace weft::testing {

/// Valid UTF-8 of up to about `most` code points. One generator call a code point: nested generators made the
/// tests ten times slower.
inline rc::Gen<std::string> random_text(int most = 100) {
  static const std::u32string telling =
      U"abzABZ's't're've'm'll'dSTREVELLMD0189 "
      U"\t\r\n/.,!?-_(){}<>|#@\u00a0\u0085\u1680\u180e\u2003\u2028\u202f\u3000"
      U"éÉßİıſKΣσςджЖ中文日本ひらカ한글अक्षरعربעברไทยǅʰªº²½Ⅷ৳\u0301\u0308\u0930\u200d\u200c\ufeff\u00ad\ufffd"
      U"🙂👩🏽𝔘𐐀𐐨";
  const auto code = [](std::uint32_t n) -> char32_t {
    const std::uint32_t kind = n % 16, rest = n / 16;
    if (kind < 10) return telling[rest % telling.size()];
    if (kind < 15) return rest % 128;
    const std::uint32_t any = rest % 0x10f800;
    return any >= 0xd800 ? any + 0x800 : any;
  };
  const auto numbers = rc::gen::container<std::vector<std::uint32_t>>(
      rc::gen::resize(100, rc::gen::arbitrary<std::uint32_t>()));
  return rc::gen::map(rc::gen::scale(most / 100.0, numbers), [code](const std::vector<std::uint32_t>& drawn) {
    std::string text;
    for (const std::uint32_t n : drawn) unicode::append(text, code(n));
    return text;
  });
}

}  // namespace weft::testing
