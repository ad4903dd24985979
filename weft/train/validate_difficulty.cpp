// Samples by difficulty: metrics can be read, and nothing else orders samples or changes batches.
#include "weft/base/error.h"
#include "weft/data/difficulty.h"
#include "weft/train/validate.h"

namespace weft {

void validate::difficulty(const TrainConfig& c) {
  if (!c.data.difficulty.on()) return;
  constexpr std::string_view who = "{data.difficulty.metrics}";
  for (std::size_t i = 0; i < c.data.difficulty.metrics.size(); ++i) {
    std::string name;
    try {
      name = data::read_metric(c.data.difficulty.metrics[i]).name;
    } catch (const Error& e) {
      fail(e.kind(), who, ": ", e.what());
    }
    for (std::size_t j = 0; j < i; ++j)
      if (data::read_metric(c.data.difficulty.metrics[j]).name == name)
        fail(Kind::usage, who, " names ", name, " twice");
  }
  if (c.data.order == SampleOrder::cyclic)
    fail(Kind::usage, who,
         " is an order of samples, and {data.order=cyclic} another one: leave one of them out");
  if (c.data.exact_epochs > 1)
    fail(Kind::usage, who, ": an index is of one epoch, and {data.exact_epochs} is ", c.data.exact_epochs,
         ": leave it out");
  if (!c.batch.rampup.empty() || !c.batch.schedule.empty())
    fail(Kind::usage, who,
         ": all steps draw one number of samples, and {batch.rampup} and {batch.schedule} change ",
         "it: leave them out");
}

}  // namespace weft
