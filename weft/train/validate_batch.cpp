// Rules of batches, length, evaluation and data.
#include "weft/base/error.h"
#include "weft/model/kinds.h"
#include "weft/train/batch_size.h"
#include "weft/train/schedules.h"
#include "weft/train/stages.h"
#include "weft/train/validate.h"

namespace weft {

void validate::batches(TrainConfig& c) {
  BatchConfig& b = c.batch;
  if (b.micro < 1) fail(Kind::usage, "--micro-batch-size is not set: how many samples a rank takes at once");
  if (!b.schedule.empty()) {
    const std::int64_t last = read_batch_steps(b.schedule).back().batch;
    if (b.global > 0 && b.global != last)
      fail(Kind::usage, "--step-batch-size-schedule ends with a batch of ", last,
           ", and --global-batch-size ", b.global, " is another: leave it out");
    if (!b.rampup.empty() || b.round_down)
      fail(Kind::usage,
           "--step-batch-size-schedule goes with neither --rampup-batch-size nor "
           "--decrease-batch-size-if-needed");
    b.global = last;
  }
  if (b.global == 0) b.global = b.micro * c.parallel.dp;
  if (b.global < 0) fail(Kind::usage, "--global-batch-size ", b.global, " is not at least 1");
  static_cast<void>(BatchSchedule(b, c.parallel.dp, c.model.sequence));
  if (c.parallel.pp == 1) return;
  const std::int64_t share = rows_of_a_pass(c.model, b) * c.parallel.dp;
  if (b.global % share == 0) static_cast<void>(schedule_of(c.parallel, int(b.global / share)));
}

void validate::length(TrainConfig& c) {
  const LengthConfig& l = c.length;
  const RateConfig& r = c.rate;
  if (l.iterations > 0 && l.samples > 0)
    fail(Kind::usage, "--train-iters and --train-samples both say how long to train: leave one out");
  if (l.iterations <= 0 && l.samples <= 0 && l.tokens <= 0 && !c.eval.skip_train)
    fail(Kind::usage, "nothing says how long to train: --train-iters, --train-samples or --train-tokens");
  if (l.iterations > 0 && (r.decay_samples > 0 || r.warmup_samples > 0 || r.anneal_samples > 0))
    fail(Kind::usage,
         "--train-iters counts steps: use --lr-decay-iters, --lr-warmup-iters and --lr-wsd-decay-iters");
  if (l.samples > 0 && (r.decay_iterations > 0 || r.warmup_iterations > 0 || r.anneal_iterations > 0))
    fail(Kind::usage,
         "--train-samples counts samples: use --lr-decay-samples, --lr-warmup-samples and "
         "--lr-wsd-decay-samples");
}

void validate::evaluation(TrainConfig& c) {
  EvalConfig& e = c.eval;
  if (e.micro == 0) e.micro = c.batch.micro;
  if (e.global == 0) e.global = c.batch.global;
  const std::int64_t share = e.micro * c.parallel.dp;
  if (e.micro < 1 || e.global < 1 || e.global % share != 0)
    fail(Kind::usage, "evaluation batch size ", e.global,
         " is not a multiple of micro batch size times data-parallel ranks, ", share);
  if (e.iterations < 0) fail(Kind::usage, "--eval-iters ", e.iterations, " is not 0 or more");
}

void validate::rates(const TrainConfig& c) {
  const RateConfig& r = c.rate;
  if (c.eval.skip_train) return;
  if (!r.peak) fail(Kind::usage, "--lr is not set: the learning rate after warm-up");
  if (*r.peak < 0 || r.floor < 0)
    fail(Kind::usage, "a learning rate is not 0 or more: --lr ", *r.peak, ", --min-lr ", r.floor);
  if (r.floor > *r.peak) fail(Kind::usage, "--min-lr ", r.floor, " is greater than --lr ", *r.peak);
  if (r.start > *r.peak) fail(Kind::usage, "--lr-warmup-init ", r.start, " is greater than --lr ", *r.peak);
  if (r.warmup_fraction && (r.warmup_iterations > 0 || r.warmup_samples > 0 || r.warmup_tokens > 0))
    fail(Kind::usage, "--lr-warmup-fraction and a length of warm-up contradict each other: leave one out");
  if (r.warmup_fraction && !(*r.warmup_fraction >= 0 && *r.warmup_fraction < 1))
    fail(Kind::usage, "--lr-warmup-fraction ", *r.warmup_fraction, " is not at least 0 and below 1");
  const BatchSchedule batch(c.batch, c.parallel.dp, c.model.sequence);
  const RateSchedule s = rate_plan(c, steps_of(c, batch)).schedule;
  const std::string_view unit = r.decay_tokens > 0 || r.warmup_tokens > 0 ? "tokens" : "samples";
  if (s.warmup >= s.decay)
    fail(Kind::usage, "warm-up over ", s.warmup, " ", unit, " does not end before the decay at ", s.decay,
         " ", unit);
  if (s.style == RateStyle::wsd && (s.anneal < 1 || s.anneal > s.decay))
    fail(Kind::usage,
         "--lr-decay-style WSD needs --lr-wsd-decay-iters or -samples between 1 and the decay at ", s.decay,
         " ", unit, ", found ", s.anneal);
}

void validate::data(TrainConfig& c, std::vector<std::string>& notices) {
  DataConfig& d = c.data;
  const bool per_split =
      !d.train_paths.empty() || !d.valid_paths.empty() || !d.test_paths.empty() || !d.per_split_file.empty();
  const bool together = !d.paths.empty() || !d.paths_file.empty();
  const int sources = d.mock + per_split + together;
  if (sources == 0)
    fail(Kind::usage, "nothing to train on: give --data-path, paths per split, or --mock-data");
  if (sources > 1)
    fail(Kind::usage,
         "data come from one place: --data-path, paths per split, or --mock-data, and more than one was "
         "given");
  if (per_split && !d.split.empty())
    fail(Kind::usage, "--split cuts --data-path; paths per split are cut already");
  if (d.split.empty() && !per_split) d.split = "969, 30, 1";
  if (d.tokenizer.type.empty() && c.model.vocabulary == 0)
    fail(Kind::usage,
         "nothing says which token ids may occur: give --tokenizer-type with its files, or --vocab-size");
  if (d.tokenizer.type == "NullTokenizer" && c.model.vocabulary == 0)
    fail(Kind::usage, "--tokenizer-type NullTokenizer needs --vocab-size");
  if (!c.run.sample_prompt.empty() && d.tokenizer.type.empty())
    fail(Kind::usage,
         "--sample-prompt needs a tokenizer, and --vocab-size alone is none: give --tokenizer-type with its "
         "files");
  if (!c.run.sample_prompt.empty() && !kind_of(c.model).continues)
    fail(Kind::usage, "--sample-prompt: a model of the family ", c.model.kind, " does not go on from a text");
  if (d.fim.on && d.tokenizer.type.empty())
    fail(Kind::usage, "--fim-data reads text, so it needs a tokenizer: give --tokenizer-type with its files");
  if (d.fim.on && d.fim.split.empty() == d.fim.fragment_rate.has_value())
    fail(Kind::usage, "--fim-split-sample and --fim-fragment-rate go together: give both or neither");
  const bool of_documents = d.mask_eod_loss || d.reset_positions || d.reset_attention ||
                            d.between_documents || d.partial_validation || d.fim.on;
  if (of_documents && kind_of(c.model).samples(c.model).of != Samples::Of::documents)
    fail(
        Kind::usage, c.model.kind,
        ": --eod-mask-loss, --reset-position-ids, --reset-attention-mask, "
        "--dataloader-inter-document-masking, --keep-last-partial-validation-sequence and --fim-data are for "
        "windows on documents, and here samples are sentences with hidden words: leave them out");
  if (d.between_documents && (d.reset_positions || d.reset_attention))
    fail(Kind::usage,
         "--dataloader-inter-document-masking begins anew with each document, --reset-position-ids and "
         "--reset-attention-mask behind each end-of-document token: leave one of them out");
  if (!d.validation_names.empty() && !d.separate_validation)
    fail(Kind::usage, "--validation-set-names needs --multiple-validation-sets");
  if (!d.sharded_cycles && d.order == SampleOrder::single)
    notices.push_back("no effect here: --no-data-sharding (only --dataloader-type cyclic shuffles by rank)");
  if (d.sharded_cycles && d.order == SampleOrder::cyclic && c.model.exact && c.parallel.dp > 1)
    fail(Kind::usage,
         "--dataloader-type cyclic gives every data-parallel rank samples of its own, so another layout "
         "trains on "
         "others: give --no-data-sharding with --exact");
}

}  // namespace weft
