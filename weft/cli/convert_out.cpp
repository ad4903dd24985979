// To programs whose files hold a model's weights alone: Hugging Face's and Megatron's.
#include <algorithm>
#include <iostream>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/checkpoint/find.h"
#include "weft/cli/convert_job.h"
#include "weft/exchange/hub_config.h"
#include "weft/exchange/megatron/arguments_write.h"
#include "weft/exchange/megatron/write.h"
#include "weft/model/kinds.h"
#include "weft/text/open.h"
#include "weft/train/resume_theirs.h"
#include "weft/train/run_data.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using exchange::Recipe;

exchange::HubTokens tokens_of(const fs::path& directory, const NamedModel& source) {
  TrainConfig settings;
  settings.data.tokenizer = tokenizer_in(directory);
  settings.model = source.settings.model;
  const auto tokenizer = run_tokenizer(settings.data.tokenizer, settings.model.vocabulary);
  if (!tokenizer) return {};
  exchange::HubTokens out{
      .begin = tokenizer->special("bos"), .end = tokenizer->special("eod"), .pad = tokenizer->special("pad")};
  if (source.settings.model.decoder_layers > 0) {
    out.end = tokenizer->special("eos");
    out.start = decoder_start(*tokenizer);
  }
  if (source.generation.file.empty()) return out;
  out.ends = source.generation.ends;
  if (out.ends.size() == 1) out.end = out.ends.front();
  out.generation = generation_json(source.generation);
  return out;
}

Dtype stored_in(const checkpoint::OpenStep& step, const Recipe& recipe) {
  const auto found = step.index().tensors.find(recipe.name);
  return found == step.index().tensors.end() ? Dtype::f32 : found->second.dtype;
}

}  // namespace

Reading reading_of(const NamedModel& source) {
  const ModelConfig& model = source.settings.model;
  const Recipe first{.name = kind_of(model).parameters(model).all().front().name};
  if (!source.theirs) {
    const auto weights = std::make_shared<exchange::StepWeights>(source.path);
    return {stored_in(weights->step(), first),
            [weights](const Recipe& recipe) { return weights->read(recipe); }};
  }
  const std::shared_ptr<const exchange::TheirWeights> weights = source.theirs->open();
  return {weights->dtype(weights->at(first.name)), [weights](const Recipe& recipe) {
            std::vector<float> out(std::size_t(recipe.shape.elements()));
            weights->read(weights->at(recipe.name), 0, out);
            return out;
          }};
}

Result result_for(const Conversion& job, const NamedModel& source, const Reading& reading) {
  const bool coded = source.theirs && source.theirs->hub && source.theirs->hub->blocks;
  Result out;
  out.made = job.to;
  out.stored = coded ? Dtype::f8e4m3 : reading.stored;
  out.dtype = dtype_or(job.options.dtype, coded ? Dtype::bf16 : reading.stored);
  return out;
}

Result to_hub(const Conversion& job, const NamedModel& source) {
  const ModelConfig& model = source.settings.model;
  const Reading reading = reading_of(source);
  Result out;
  out.made = job.to;
  out.stored = reading.stored;
  out.dtype = dtype_or(job.options.dtype, out.stored);
  exchange::must_be_free(job.to);
  must_hold_no_model(job.to);
  (void)exchange::hub_config_json(model, out.dtype,
                                  {});  // what it cannot say is said before a file is written
  out.tokenizer = tokenizer_beside(job, source, job.to);
  const exchange::HubExport how{
      .dtype = out.dtype,
      .shard_bytes = job.options.shard_bytes,
      .tokens = out.tokenizer.empty() ? exchange::HubTokens{} : tokens_of(job.to, source)};
  out.written = exchange::write_hub(job.to, model, reading.read, how);
  return out;
}

namespace {

/// Whoever starts Megatron-LM must say them.
void say_left_out(const ModelConfig& model, Dtype dtype) {
  std::string flags;
  for (const auto& [name, value] :
       exchange::megatron::left_out(exchange::megatron::arguments_of(model, dtype))) {
    std::string flag = name;
    std::ranges::replace(flag, '_', '-');
    flags += text(" --", flag, value.empty() ? "" : " ", value);
  }
  if (!flags.empty())
    std::cerr
        << "Megatron-LM's --use-checkpoint-args leaves some of the model out, which its command line must "
           "say:"
        << flags << '\n';
}

}  // namespace

Result to_megatron(const Conversion& job, const NamedModel& source) {
  must_hold_no_model(job.to);
  const Reading reading = reading_of(source);
  Result out = result_for(job, source, reading);
  out.written =
      exchange::megatron::write_release(job.to, source.settings.model, reading.read,
                                        {.dtype = out.dtype, .file_bytes = job.options.shard_bytes});
  const fs::path tokenizer = exchange::megatron::release_directory(job.to) / "tokenizer";
  out.tokenizer = tokenizer_beside(job, source, tokenizer);
  say_left_out(source.settings.model, out.dtype);
  return out;
}

}  // namespace weft::cli
