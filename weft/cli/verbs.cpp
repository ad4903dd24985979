// The table of all verbs, in the order help lists them. A new verb adds its line here and in verbs.h.
#include "weft/cli/verbs.h"

#include <array>

namespace weft::cli {

std::span<const Verb> verbs() {
  // A line a verb, so that two new verbs do not collide.
  // clang-format off
  static const std::array table{
      train_verb(),
      launch_verb(),
      job_verb(),
      preprocess_verb(),
      tokenizer_verb(),
      generate_verb(),
      data_verb(),
      checkpoint_verb(),
      plot_verb(),
      schedule_verb(),
      bench_verb(),
      selftest_verb(),
      doctor_verb(),
      completion_verb(),
      version_verb(),
      help_verb(),
  };
  // clang-format on
  return table;
}

}  // namespace weft::cli
