// The fields of RunFacts, each listed once; configuration's own are in describe.h.
#pragma once

#include "weft/train/describe.h"
#include "weft/train/save_facts.h"

namespace weft {

template <class Visitor>
void describe(Visitor& v, RunPosition& c) {
  v("step", c.step, "steps taken");
  v("consumed_samples", c.consumed_samples, "training samples read");
  v("learned_samples", c.learned_samples, "samples of steps that were applied: where the schedules stand");
  v("skipped_samples", c.skipped_samples, "samples of steps that were left out on purpose");
  v("consumed_tokens", c.consumed_tokens, "training tokens read");
  v("learned_tokens", c.learned_tokens, "tokens of steps that were applied");
  v("last_batch", c.last_batch, "samples of the last step");
  v("valid_samples", c.valid_samples, "validation samples that evaluations have used");
  v("test_samples", c.test_samples, "test samples that evaluations have used");
  v("optimizer", c.optimizer, "optimizer states are saved");
  v("schedules", c.schedules, "the run's schedules are written down");
  v("updates", c.updates, "updates that were applied");
  v("loss_scale", c.loss_scale, "loss scale of f16");
  v("scale_clean", c.scale_clean, "clean steps since the scale changed");
  v("scale_patience", c.scale_patience, "bad steps that are still let pass");
  v("seed", c.seed, "seed of weights, dropout and data order");
  v("validated_steps", c.validated_steps, "saved steps that were validated");
  v("validated_losses", c.validated_losses, "and their losses");
}

template <class Visitor>
void describe(Visitor& v, RunWitness& c) {
  v("loss", c.loss, "loss of the last batch under the saved weights, without dropout");
  v("weights_norm", c.weights_norm, "norm of all weights");
}

template <class Visitor>
void describe(Visitor& v, RunLayout& c) {
  v("tp", c.tp, "ranks that shared each layer");
  v("cp", c.cp, "ranks that shared a sequence");
  v("dp", c.dp, "ranks that shared a batch");
  v("pp", c.pp, "stages");
}

template <class Visitor>
void describe(Visitor& v, RunTokenizer& c) {
  v("type", c.type, "kind of tokenizer");
  v("size", c.size, "token ids");
  v("files", c.files, "files it was read from");
  v("hashes", c.hashes, "XXH3-128 of each");
  v("copies", c.copies, "names of their copies in the folder tokenizer");
}

template <class Visitor>
void describe(Visitor& v, RateSchedule& c) {
  v("style", c.style, "curve of the decay");
  v("anneal_style", c.anneal_style, "wsd: curve of the last part");
  v("start", c.start, "rate at the start of warm-up");
  v("peak", c.peak, "rate after warm-up");
  v("floor", c.floor, "rate after decay");
  v("warmup", c.warmup, "length of warm-up");
  v("decay", c.decay, "where decay ends");
  v("anneal", c.anneal, "wsd: length of the last part");
  v("step", c.step, "a step of DeepSpeed's schedules");
  v("warmup_curve", c.warmup_curve, "how they warm up");
  v.group("cycle", c.cycle);
  v.group("climb", c.climb);
}

template <class Visitor>
void describe(Visitor& v, RatePlan& c) {
  v("unit", c.unit, "1: lengths are in samples; otherwise in tokens, so many a sample");
  describe(v, c.schedule);
}

template <class Visitor>
void describe(Visitor& v, DecaySchedule& c) {
  v("growth", c.growth, "how weight decay grows");
  v("start", c.start, "weight decay at the start");
  v("end", c.end, "weight decay at the end");
  v("length", c.length, "samples over which it grows");
}

template <class Visitor>
void describe(Visitor& v, RunSchedules& c) {
  v.group("rate", c.rate);
  v.group("ends_rate", c.ends);
  v.group("weight_decay", c.decay);
}

template <class Visitor>
void describe(Visitor& v, RunFacts& c) {
  v.group("run", c.run);
  v.group("witness", c.witness);
  v.group("layout", c.layout);
  v.group("tokenizer", c.tokenizer);
  v.group("schedules", c.schedules);
  v("family", c.configuration.model.kind, "family of the model");
  v.group("configuration", c.configuration);
}

}  // namespace weft
