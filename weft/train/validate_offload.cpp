// Where optimizer states may lie.
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/train/ranks.h"
#include "weft/train/validate.h"

namespace weft {
namespace {

/// A rank holds all of them, or its share.
void weights_in_files(const ParallelConfig& p) {
  if (p.near_ranks > 1)
    fail(
        Kind::usage, "{parallel.near_ranks} ", p.near_ranks,
        " keeps weights in memory a second time, and {optimizer.offload.weights} keeps them out of it: leave "
        "one of them out");
  if (data_ranks(p) > 1 && (p.zero == 1 || p.zero == 2))
    fail(Kind::usage, "{optimizer.offload.weights}: {parallel.zero} ", p.zero,
         " has every rank write weights that others updated; take {parallel.zero=3}, or 0");
}

/// What goes to and fro is a window of the states.
void by_windows(const OptimizerConfig& o, const ParallelConfig& p) {
  if (!(o.offload.fraction >= 0 && o.offload.fraction <= 1))
    fail(Kind::usage, "{optimizer.offload.fraction} ", o.offload.fraction, " is not between 0 and 1");
  const bool walks = o.kind == OptimizerKind::adam || o.kind == OptimizerKind::sgd ||
                     o.kind == OptimizerKind::lion || o.kind == OptimizerKind::lamb;
  if (!walks)
    fail(Kind::usage, "{optimizer.offload.on}: {optimizer.kind=", words(o.kind)[std::size_t(o.kind)],
         "} needs more of its states at once than a window of them: take adam, sgd, lion or lamb");
  if (o.offload.weights) weights_in_files(p);
}

}  // namespace

// Who names no directory means the host's memory, as Megatron and DeepSpeed do: processors compute there.
void validate::offload(TrainConfig& c, std::vector<std::string>& notices) {
  OffloadConfig& o = c.optimizer.offload;
  if (!o.on) return;
  if (o.directory.empty() && !c.run.device.starts_with("cuda")) {
    notices.push_back(text(
        "{optimizer.offload.on} has no effect: optimizer states", o.weights ? " and weights lie" : " lie",
        " in the host's memory, where ranks compute; {optimizer.offload.directory} puts them in files"));
    o.on = o.weights = false;
    return;
  }
  by_windows(c.optimizer, c.parallel);
  if (o.directory.empty()) o.fraction = 0;
  if (c.checkpoint.in_background)
    notices.push_back(
        "{checkpoint.in_background} keeps a copy in memory of all that {optimizer.offload.on} keeps out of "
        "it: leave it out where memory is short");
}

}  // namespace weft
