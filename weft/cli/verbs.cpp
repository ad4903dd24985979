// The table of all verbs, in the order help lists them. A new verb adds its line here and in verbs.h.
#include "weft/cli/verbs.h"

#include <array>

namespace weft::cli {

std::span<const Verb> verbs() {
  static const std::array table{
      train_verb(), preprocess_verb(), data_verb(), tokenizer_verb(), version_verb(), help_verb(),
  };
  return table;
}

}  // namespace weft::cli
