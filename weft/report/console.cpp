// The live line is written over itself; whatever else is said starts on a line of its own.
#include "weft/report/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "weft/report/line.h"

namespace weft::report {
namespace {

class Lines final : public Sink {
 public:
  explicit Lines(LineForm form) : form_(form) {}
  const char* name() const override { return "the log"; }
  void write(const StepRecord& step) override {
    if (step.span == RecordScope::engine) return fmt::print(stderr, "{}\n", engine_line(step));
    if (!tells_of_an_interval(step.span)) return;
    fmt::print(stderr, "{}\n",
               form_ == LineForm::deepspeed ? deepspeed_lines(step) : iteration_line(step, now_text()));
    if (!step.experts.empty()) fmt::print(stderr, "{}\n", experts_line(step));
  }
  void write(const Evaluation& evaluation) override {
    fmt::print(stderr, "{}\n", evaluation_lines(evaluation));
  }
  void write(const Timers& timers) override { fmt::print(stderr, "{}\n", timer_lines(timers)); }
  void flush() override { std::fflush(stderr); }

 private:
  LineForm form_;
};

// What stands below the live line is written first, so that whoever says something else finds the cursor
// where it is without it: behind the live line.
class Live final : public Sink {
 public:
  const char* name() const override { return "the terminal"; }
  void write(const StepRecord& step) override {
    if (!tells_of_an_interval(step.span)) return;
    const std::string below = live_experts_line(step);
    const bool last = step.iteration == step.iterations;
    if (!below.empty()) fmt::print(stderr, "\n\x1b[K{}\x1b[A", below);
    fmt::print(stderr, "\r\x1b[K{}", live_line(step));
    if (last) std::fputs(below.empty() ? "\n" : "\n\n", stderr);
    std::fflush(stderr);
  }
  void write(const Evaluation& evaluation) override {
    fmt::print(stderr, "\r\x1b[J");
    for (const auto& [name, loss] : evaluation.losses)
      fmt::print(stderr, "{}: {} {:.4f}, perplexity {:.2f}\n", evaluation.of, name + evaluation.set, loss,
                 perplexity(loss));
  }
  void write(const Timers& timers) override { fmt::print(stderr, "\r\x1b[J{}\n", timer_lines(timers)); }
};

}  // namespace

Console console_of_stderr() { return isatty(STDERR_FILENO) ? Console::live : Console::lines; }

std::unique_ptr<Sink> console_sink(Console kind, LineForm form) {
  if (kind == Console::live) return std::make_unique<Live>();
  return std::make_unique<Lines>(form);
}

}  // namespace weft::report
