// weft plot: the curve of a run, in the terminal or as a picture.
#include <iostream>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/file.h"
#include "weft/base/flags.h"
#include "weft/cli/verbs.h"
#include "weft/report/chart.h"

namespace weft::cli {
namespace {

struct PlotOptions {
  std::string key = "lm_loss", svg;
};

template <class Visitor>
void describe(Visitor& v, PlotOptions& o) {
  v("key", o.key, "what to draw: lm_loss, grad_norm, learning_rate, tokens_per_second, …");
  v("svg", o.svg, "write a picture to this file instead");
}

int run_plot(Args args) {
  PlotOptions options;
  Fields fields{options};
  const std::vector<std::string> files = read_flags(fields, args);
  if (files.size() != 1)
    fail(Kind::usage, "plot: name one log of JSON lines, as weft train --log-jsonl FILE writes it");
  const auto points = report::read_curve(read_file(files[0]), options.key);
  if (points.empty()) fail(Kind::data, "plot: no line of ", files[0], " has a number called ", options.key);
  const report::ChartOptions how{.title = options.key};
  if (options.svg.empty())
    std::cout << report::text_chart(points, how);
  else
    write_atomically(options.svg, report::svg_chart(points, how));
  return static_cast<int>(Exit::done);
}

VerbHelp about_plot() {
  return {
      .usage = "weft plot FILE.jsonl [--key NAME] [--svg FILE]",
      .examples = {{"weft plot run.jsonl", "the loss over steps, in the terminal"},
                   {"weft plot run.jsonl --key grad_norm --svg norm.svg", "a picture of the gradient norm"}},
      .topics = {}};
}

}  // namespace

Verb plot_verb() { return {"plot", "draws a run's curve", run_plot, about_plot}; }

}  // namespace weft::cli
