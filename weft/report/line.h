// Lines for people: Megatron's, character by character, and the live one.
#pragma once

#include <string>

#include "weft/report/record.h"

namespace weft::report {

/// " [2026-01-31 10:00:00.000000] iteration       10/     100 | consumed samples: …": what scripts that read
/// Megatron's logs expect. `when` is the text between the brackets.
std::string iteration_line(const StepRecord& step, const std::string& when);
/// "steps: 10 loss: …", as DeepSpeed's pipeline engine tells of a step.
std::string engine_line(const StepRecord& step);
/// That, unless it is told of apart, and Megatron-DeepSpeed's own line:
/// " iteration       10/     100 | consumed samples: … | consumed tokens: …".
std::string deepspeed_lines(const StepRecord& step);
/// The three lines of an evaluation, dashes above and below.
std::string evaluation_lines(const Evaluation& evaluation);
/// A heading and a line a part: "    forward-backward ....: (12.50, 20.00)".
std::string timer_lines(const Timers& timers);
/// What goes below a step's line where layers are mixtures of experts; empty where none are.
std::string experts_line(const StepRecord& step);
/// One short line with rate and time left, for a terminal.
std::string live_line(const StepRecord& step);
/// What stands below it where layers are mixtures of experts; empty where none are.
std::string live_experts_line(const StepRecord& step);
/// Local time with microseconds, as the iteration line has it.
std::string now_text();

}  // namespace weft::report
