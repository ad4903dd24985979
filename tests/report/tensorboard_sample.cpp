// tensorboard_sample DIRECTORY: writes a short run, for TensorBoard itself to read back.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "weft/report/tensorboard.h"

namespace {

weft::report::StepRecord step(int n) {
  weft::report::StepRecord s;
  s.iteration = n;
  s.iterations = 10;
  s.consumed_samples = 8 * n;
  s.global_batch = 8;
  s.milliseconds = 250;
  s.teraflops = 4.0;
  s.losses = {{"lm loss", 10.0 / n}};
  s.learning_rate = 1e-4 * n;
  s.grad_norm = n == 7 ? std::nan("") : 1.0 + n;
  s.memory = {{"mem-allocated-bytes", 1 << 19}};
  return s;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: tensorboard_sample DIRECTORY\n", stderr);
    return EXIT_FAILURE;
  }
  weft::report::TensorBoardOptions all{.directory = words[1]};
  all.timers = all.memory = all.perplexity = all.world_size = true;
  const auto sink = weft::report::tensorboard_sink(all);
  for (int n = 1; n <= 10; ++n) {
    sink->write(step(n));
    sink->write(weft::report::Timers{.iteration = n, .milliseconds = {{"forward-backward", {150.0, 200.0}}}});
  }
  sink->write(weft::report::Evaluation{
      .of = "iteration 10", .iteration = 10, .consumed_samples = 80, .losses = {{"lm loss", 1.5}}});
  sink->flush();
  return EXIT_SUCCESS;
}
