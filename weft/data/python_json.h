// JSON objects as Python's json reads them, which is what made many data sets: NaN and infinities, numbers of
// any size, and halves of surrogate pairs are let pass where simdjson refuses them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

/// The texts of each key: one for a text, its elements for a list; of a key given twice the last counts. The
/// line is UTF-8. Fails with Kind::data, saying what is wrong at which column, where Python's json would, and
/// where a wanted text is none.
std::vector<std::vector<std::string>> texts_as_python_reads(std::string_view line,
                                                            const std::vector<std::string>& keys);

}  // namespace weft::data
