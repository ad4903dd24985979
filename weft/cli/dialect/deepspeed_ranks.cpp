// What DeepSpeed's file says by ranks, once their number is known.
#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/cli/dialect.h"

namespace weft::cli {
namespace {

/// Ranks that read other samples; 0 where the layout does not come out even, which is refused elsewhere.
std::int64_t data_ranks(const TrainConfig& c, int world) {
  const ParallelConfig& p = c.parallel;
  const std::int64_t model = std::int64_t(p.tp) * p.pp * p.cp;
  const std::int64_t all = world > 0 ? world : c.run.ranks > 0 ? c.run.ranks : model;
  return model > 0 && all % model == 0 ? all / model : 0;
}

void derive(Command& command, std::string_view path, std::int64_t value) {
  command.fields.at(path).read(std::vector{write_word(value)}, Origin::derived);
}

// Two of the three give the third, and a batch alone is one microbatch on every rank.
void settle_batch(Command& command, std::int64_t ranks) {
  const BatchConfig& b = command.config.batch;
  const std::string& file = command.deepspeed->file;
  const std::optional<std::int64_t> said = command.deepspeed->accumulation;
  if (!b.schedule.empty() || !b.rampup.empty()) {
    if (said)
      fail(Kind::usage, "gradient_accumulation_steps of ", file, " holds one batch, and ",
           b.schedule.empty() ? "{batch.rampup}" : "{batch.schedule}", " lets it grow: leave one out");
    return;
  }
  if ((!said && (b.micro > 0 || b.global == 0)) || (b.micro == 0 && b.global == 0)) return;
  const std::int64_t times = said.value_or(1), share = product(times, ranks, Kind::usage);
  if (b.global == 0) return derive(command, "batch.global", product(b.micro, share, Kind::usage));
  if (b.micro == 0 && b.global % share == 0) return derive(command, "batch.micro", b.global / share);
  if (b.micro == 0)
    fail(Kind::usage, "{batch.global} ", b.global, " is not a multiple of ", times, " microbatches on ",
         ranks, " data-parallel ranks: say train_micro_batch_size_per_gpu in ", file);
  if (product(b.micro, share, Kind::usage) != b.global)
    fail(Kind::usage, "{batch.global} ", b.global, " is not {batch.micro} ", b.micro,
         " times gradient_accumulation_steps ", times, " of ", file, " times ", ranks,
         " data-parallel ranks, ", product(b.micro, share, Kind::usage));
}

void settle_groups(Command& command, std::int64_t ranks) {
  const std::optional<std::int64_t> each = command.deepspeed->shard_ranks;
  if (!each) return;
  constexpr std::string_view path = "parallel.shard_groups", key = "zero_optimization.mics_shard_size";
  if (ranks % *each != 0)
    fail(Kind::usage, key, " ", *each, " of ", command.deepspeed->file, " does not divide ", ranks,
         " data-parallel ranks");
  const std::int64_t groups = ranks / *each;
  if (command.flags.contains(path) && command.config.parallel.shard_groups != groups)
    fail(Kind::usage, "{parallel.shard_groups} ", command.config.parallel.shard_groups, " and ", key, " ",
         *each, " of ", command.deepspeed->file, " contradict each other: ", ranks,
         " data-parallel ranks are ", groups, " groups of ", *each);
  if (groups == 1) return;
  derive(command, path, groups);
  command.flags[path] = key;
}

}  // namespace

void settle_by_ranks(Command& command, int world) {
  if (!command.deepspeed) return;
  const std::int64_t ranks = data_ranks(command.config, world);
  if (ranks == 0) return;
  settle_batch(command, ranks);
  settle_groups(command, ranks);
}

}  // namespace weft::cli
