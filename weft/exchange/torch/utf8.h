#pragma once

#include <string_view>

namespace weft::exchange::torch {

/// Whether a text is UTF-8 as Python writes it: lone surrogates may stand in it.
bool is_utf8(std::string_view text);

}  // namespace weft::exchange::torch
