// The two halves of the table of filters.
#pragma once

#include "weft/text/jinja/work.h"

namespace weft::jinja {

/// Filters of lists and dicts; null where it is none.
[[nodiscard]] const Known* list_filter_named(std::string_view name);

}  // namespace weft::jinja
