// A line of JSON a step, for programs: numbers with enough digits to give the same bits back.
#pragma once

#include <filesystem>
#include <memory>

#include "weft/report/sink.h"

namespace weft::report {

/// Appends, so that a resumed run goes on in the same file.
std::unique_ptr<Sink> jsonl_sink(const std::filesystem::path& path);
std::string json_line(const StepRecord& step);
std::string json_line(const Evaluation& evaluation);

}  // namespace weft::report
