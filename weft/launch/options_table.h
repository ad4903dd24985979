// One row an option: its names, what it does to Options, or why weft does not take it.
#pragma once

#include <span>

#include "weft/launch/options.h"

namespace weft::launch {

struct Row {
  OptionRow about;  // help "" for what has no effect here
  bool torchrun;    // PET_NAME may set it
  void (*set)(Options& options, std::string_view who, std::string_view word);
  /// Why it has no effect, or why it is refused; "" where it is honored.
  std::string_view no_effect = "", refused = "";
};

std::span<const Row> option_table();

}  // namespace weft::launch
