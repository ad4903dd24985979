// The lines are Megatron's, tabs between their fields; those of earlier jobs are read back for the time they
// took.
#include "weft/report/progress.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <sstream>
#include <vector>

#include "weft/base/file.h"

namespace weft::report {
namespace {

double system_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// When a row of jobs with as many ranks began, and the operations that were done before it.
struct Beginning {
  std::optional<double> time;
  double flops = 0;
};

/// What stands behind ": " of a field; 0 where it is none.
double number_in(const std::string& field) {
  const auto colon = field.find(": ");
  return colon == std::string::npos ? 0 : std::strtod(field.c_str() + colon + 2, nullptr);
}

std::optional<double> time_in(const std::string& field) {
  std::tm parts{};
  parts.tm_isdst = -1;
  const char* end = strptime(field.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
  if (!end || *end != '\0') return std::nullopt;
  return double(std::mktime(&parts));
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  return fields;
}

Beginning beginning_in(const std::string& lines, int ranks) {
  Beginning found;
  double flops = 0;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() < 4) continue;
    if (fields[3] == "Saved checkpoint" && fields.size() > 7) flops = number_in(fields[7]);
    if (int(number_in(fields[2])) != ranks) {
      found = {};
    } else if (fields[3] == "Starting job" && !found.time) {
      found = {time_in(fields[0]), flops};
    }
  }
  return found;
}

class Progress final : public Sink {
 public:
  explicit Progress(ProgressOptions options) : options_(std::move(options)) {
    if (!options_.now) options_.now = system_now;
    start_ = options_.now();
    make_directories(options_.file.parent_path());
    append("Starting job");
    first_ = beginning_in(read_file(options_.file), options_.ranks);
  }
  const char* name() const override { return "progress.txt"; }
  void write(const StepRecord&) override {}
  void write(const Evaluation&) override {}
  void write(const Saved& saved) override {
    const double now = options_.now();
    const auto rate = [&](double flops, double since) {
      return now > since ? flops / (now - since) / 1e12 / options_.ranks : 0;
    };
    append(fmt::format(
        "Saved checkpoint\tIteration: {}\tJob throughput: {:.1f} TFLOP/s/GPU\t"
        "Cumulative throughput: {:.1f} TFLOP/s/GPU\tFloating-point operations: {:.2e}\t"
        "Tokens (in billions): {:.2f}",
        saved.iteration, rate(saved.flops - saved.flops_before_job, start_),
        rate(saved.flops - first_.flops, first_.time.value_or(start_)), saved.flops, saved.tokens / 1e9));
  }

 private:
  // Opened for every line: hours lie between them, and somebody may have moved the file.
  void append(const std::string& what) {
    const auto now = std::time_t(options_.now());
    File(options_.file, Open::append)
        .write(fmt::format("{:%Y-%m-%d %H:%M:%S}\tJob ID: {}\t# GPUs: {}\t{}\n", fmt::localtime(now),
                           options_.job, options_.ranks, what));
  }

  ProgressOptions options_;
  double start_ = 0;
  Beginning first_;
};

}  // namespace

std::unique_ptr<Sink> progress_sink(ProgressOptions options) {
  return std::make_unique<Progress>(std::move(options));
}

}  // namespace weft::report
