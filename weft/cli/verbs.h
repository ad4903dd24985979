// One line a verb: each is made in the file of its name and listed in verbs.cpp.
#pragma once

#include "weft/cli/verb.h"

namespace weft::cli {

Verb bench_verb();
Verb checkpoint_verb();
Verb completion_verb();
Verb data_verb();
Verb doctor_verb();
Verb generate_verb();
Verb help_verb();
Verb job_verb();
Verb launch_verb();
Verb plot_verb();
Verb preprocess_verb();
Verb schedule_verb();
Verb selftest_verb();
Verb tokenizer_verb();
Verb train_verb();
Verb version_verb();

}  // namespace weft::cli
