// To a checkpoint of weft.
#include <iostream>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/save.h"
#include "weft/cli/convert_job.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/train/keep_tokenizer.h"
#include "weft/train/resume_theirs.h"
#include "weft/train/run_data.h"
#include "weft/train/save_facts.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using exchange::Recipe;

/// Where their run stood, and by which settings that are asked for again. Its schedules are not known here.
RunFacts facts_of(const exchange::TheirRun& run) {
  RunFacts out;
  out.run.step = run.step;
  out.run.updates = run.updates;
  out.run.consumed_samples = run.consumed;
  out.run.skipped_samples = run.skipped;
  out.run.learned_samples = run.consumed - run.skipped;
  out.run.valid_samples = run.validated;
  out.run.last_batch = run.batch;
  out.run.seed = run.seed;
  out.run.schedules = false;
  TrainConfig& settings = out.configuration;
  settings.run.seed = run.seed.value_or(settings.run.seed);
  settings.batch.global = run.batch;
  settings.batch.micro = run.micro_batch;
  settings.optimizer.beta1 = run.beta1;
  settings.optimizer.beta2 = run.beta2;
  settings.optimizer.epsilon = run.epsilon;
  settings.optimizer.weight_decay = run.weight_decay;
  settings.optimizer.clip = run.clip;
  return out;
}

/// Whether it can go on; says why not.
bool is_settled(const exchange::TheirRun& run) {
  const std::string why_not = run.settle ? run.settle() : "";
  if (!why_not.empty()) std::cerr << spelled(why_not) << ": its weights alone are converted\n";
  return why_not.empty();
}

void take_tokenizer(const Conversion& job, const NamedModel& source, RunFacts& facts, Result& out) {
  const fs::path from = source.theirs->tokenizer, to = job.to / "tokenizer";
  if (!job.options.tokenizer.empty())
    out.tokenizer = copy_given_tokenizer(job, source.settings.model, to);
  else if (job.source == Form::gguf)
    out.tokenizer = write_tokenizer_of_gguf(job.from, to);
  else if (!tokenizer_in(from).type.empty())
    out.tokenizer = exchange::copy_tokenizer(from, to);
  if (out.tokenizer.empty()) return;
  if (const std::string generation = generation_json(source.generation); !generation.empty())
    write_atomically(to / exchange::generation_file, std::string_view(generation));
  TokenizerConfig& named = facts.configuration.data.tokenizer;
  named = tokenizer_in(fs::absolute(to));
  if (named.type.empty())
    fail(Kind::usage, "checkpoint convert: --tokenizer ", job.options.tokenizer,
         ": is no tokenizer by itself: name its directory");
  facts.tokenizer = tokenizer_fact(named, run_tokenizer(named, facts.configuration.model.vocabulary)->size());
}

struct Stream {
  const exchange::TheirWeights* from;
  Store as;
};
void write(const std::vector<Stream>& streams, RunFacts& facts, Result& out) {
  std::vector<exchange::Streamed> open;
  std::vector<checkpoint::Named> all;
  for (const Stream& one : streams) {
    open.push_back(exchange::stream(
        *one.from, [&](const Recipe& recipe) { return dtype_or(one.as, one.from->dtype(recipe)); }));
    all.insert(all.end(), open.back().tensors.begin(), open.back().tensors.end());
  }
  SoloCommunicator solo;
  const auto kept = keep_tokenizer(facts.tokenizer);
  checkpoint::save(out.made, all, {to_json(facts), kept}, solo);
  const checkpoint::OpenStep step(out.made);
  out.written = {.tensors = std::ssize(step.index().tensors),
                 .bytes = step.bytes(),
                 .files = std::ssize(step.index().files)};
}

}  // namespace

Dtype dtype_or(Store wanted, Dtype same) {
  switch (wanted) {
    case Store::f32:
      return Dtype::f32;
    case Store::bf16:
      return Dtype::bf16;
    case Store::f16:
      return Dtype::f16;
    case Store::q8_0:
    case Store::same:
      break;
  }
  return same;
}

std::string generation_json(const Generation& generation) {
  if (!generation.file.empty()) return read_file(generation.file);
  if (generation.ends.size() < 2) return "";
  return nlohmann::ordered_json{{"eos_token_id", generation.ends}}.dump(2) + "\n";
}

void must_hold_no_model(const fs::path& to) {
  if (!checkpoint::step_directories(to).empty())
    fail(Kind::usage, to.string(), ": holds checkpoints already; name another directory");
  if (const auto program = exchange::program_of(to))
    fail(Kind::usage, to.string(), ": holds a ",
         *program == exchange::Program::hugging_face ? "Hugging Face model"
                                                     : text("checkpoint of ", exchange::whose(*program)),
         "; name another directory");
}

Result to_weft(const Conversion& job, const NamedModel& source) {
  const exchange::TheirModel& theirs = *source.theirs;
  const bool goes_on = theirs.run && !job.options.weights_only && is_settled(*theirs.run);
  const auto weights = theirs.open();
  for (const std::string& notice : weights->notices()) std::cerr << spelled(notice) << '\n';
  if (goes_on && job.options.dtype != Store::same && job.options.dtype != Store::f32)
    fail(Kind::usage,
         "checkpoint convert: --dtype: a run goes on with weights in f32; add --weights-only for ",
         words(job.options.dtype)[std::size_t(job.options.dtype)]);
  must_hold_no_model(job.to);
  Result out;
  out.made = checkpoint::step_directory(job.to, goes_on ? theirs.run->step : 0);
  RunFacts facts = goes_on ? facts_of(*theirs.run) : RunFacts();
  facts.configuration.model = theirs.model;
  facts.run.optimizer = goes_on;
  take_tokenizer(job, source, facts, out);
  const bool coded = theirs.hub && theirs.hub->blocks;  // matrices in eight bits become bf16
  out.stored = coded ? Dtype::f8e4m3 : weights->dtype(weights->all().front());
  out.dtype = goes_on ? Dtype::f32 : dtype_or(job.options.dtype, coded ? Dtype::bf16 : out.stored);
  std::vector<Stream> streams;
  streams.push_back({weights.get(), goes_on ? Store::f32 : job.options.dtype});
  const auto states =
      goes_on ? theirs.run->open_states() : std::vector<std::unique_ptr<exchange::TheirWeights>>();
  for (const auto& state : states) streams.push_back({state.get(), Store::f32});
  write(streams, facts, out);
  return out;
}

}  // namespace weft::cli
