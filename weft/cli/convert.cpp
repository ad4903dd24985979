// weft checkpoint convert: between checkpoints of weft and other programs' models. What was
// written is read again, and its logits compared, before it is called done.
#include "weft/cli/convert.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "weft/backend/open.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/cli/convert_job.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/cli/gpu_run.h"
#include "weft/exchange/gguf/model.h"
#include "weft/exchange/gguf/write.h"
#include "weft/exchange/megatron/write.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using exchange::Recipe;

Form form_of(const std::string& word, const char* flag) {
  try {
    Form form = Form::guess;
    read_word(word, form);
    return form;
  } catch (const Error& error) {
    fail(Kind::usage, "checkpoint convert: ", flag, ": ", error.what());
  }
}

std::string whose(Form form) {
  return form == Form::gguf ? "a GGUF file" : text(words(form)[std::size_t(form)], "'s");
}

Form form_found(const fs::path& directory) {
  const auto program = exchange::program_of(directory);
  if (!program) return Form::weft;
  switch (*program) {
    case exchange::Program::hugging_face:
      return Form::hf;
    case exchange::Program::megatron:
      return Form::megatron;
    case exchange::Program::llama_cpp:
      return Form::gguf;
    case exchange::Program::deepspeed:
      break;
  }
  return Form::deepspeed;
}

/// What a directory is read as: a model of Hugging Face's may lie in one of DeepSpeed's.
Form form_read(const fs::path& directory, const std::string& asked_for) {
  const Form found = form_found(directory), given = form_of(asked_for, "--from");
  if (given == Form::guess || given == found) return found;
  if (given == Form::hf && found == Form::deepspeed && exchange::is_hub_directory(directory)) return given;
  fail(Kind::usage, "checkpoint convert: ", directory.string(), " is ", whose(found), ", and --from ",
       asked_for, " is asked for");
}

Conversion asked(Args args) {
  Conversion job;
  Fields fields(job.options);
  const auto others = read_flags(fields, args);
  if (others.size() != 2)
    fail(Kind::usage, "checkpoint convert: ", others.size(),
         " models are named, expected two: the one to read and the one to make");
  job.from = others[0];
  job.to = others[1];
  std::error_code error;
  if (!fs::is_directory(job.from, error) && !exchange::gguf::is_gguf_file(job.from))
    fail(Kind::usage, "checkpoint convert: ", others[0],
         fs::exists(job.from, error) ? " is no directory, and no GGUF file" : " is not there");
  job.source = form_read(job.from, job.options.from);
  const Form found = job.source;
  job.target = form_of(job.options.to, "--to");
  if (job.target == Form::guess && job.to.extension() == ".gguf") job.target = Form::gguf;
  if (job.target == Form::guess) job.target = found == Form::weft ? Form::hf : Form::weft;
  if (job.target == Form::deepspeed)
    fail(Kind::usage, "checkpoint convert: weft cannot write deepspeed yet: --to hf, weft, megatron or gguf");
  if (job.target == found)
    fail(Kind::usage, "checkpoint convert: ", others[0], " is ", whose(found), " already");
  if (job.options.dtype == Store::q8_0 && job.target != Form::gguf)
    fail(Kind::usage, "checkpoint convert: --dtype q8_0 is of GGUF files, and ", others[1], " is to be ",
         whose(job.target));
  if (!job.options.config.empty() && found != Form::deepspeed)
    fail(Kind::usage, "checkpoint convert: --config is of DeepSpeed's checkpoints, and ", others[0], " is ",
         words(found)[std::size_t(found)], "'s");
  if (job.options.shard_bytes < 1)
    fail(Kind::usage, "checkpoint convert: --shard-bytes ", job.options.shard_bytes, ", expected 1 or more");
  return job;
}

// ---- what is said in the end

struct Compared {
  double difference = 0, greatest = 0;
};
// Ids that no text has to give: the same for both sides.
std::vector<std::int32_t> fixed_prompt(const ModelConfig& model) {
  std::vector<std::int32_t> out;
  const std::int64_t room =
      model.decoder_layers > 0 ? std::min(model.sequence, model.decoder_sequence) : model.sequence;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(16, room); ++i)
    out.push_back(std::int32_t((7 * i * i + 3 * i + 1) % model.vocabulary));
  return out;
}
/// Where all weights were to be of a type with fewer bits, the source's are rounded to it too: which experts
/// a token goes to may hang on the last of them.
Rounding rounding_of(const NamedModel& made, const ConvertOptions& options) {
  const Dtype dtype = dtype_or(options.dtype, Dtype::f32);
  if (dtype == Dtype::f32) return {};
  const ModelConfig& model = made.settings.model;
  const auto is_of = [&](exchange::Program one) { return made.theirs && made.theirs->program == one; };
  if (is_of(exchange::Program::megatron))
    return [dtype](const std::string& name) {
      return exchange::megatron::is_always_f32(name) ? Dtype::f32 : dtype;
    };
  std::set<std::string, std::less<>> kept;  // f32 in their files whatever the others are
  if (is_of(exchange::Program::llama_cpp)) {
    kept = exchange::gguf::kept_in_f32(model);
  } else if (is_of(exchange::Program::hugging_face)) {
    for (const Recipe& recipe : exchange::recipes(exchange::type_for(model), model))
      if (std::ranges::any_of(recipe.parts, &Theirs::always_f32)) kept.insert(recipe.name);
  }
  return [dtype, kept](const std::string& name) { return kept.contains(name) ? Dtype::f32 : dtype; };
}

// One model after the other, and of each a layer after the other.
Compared compare(const NamedModel& source, const NamedModel& made, const ConvertOptions& options) {
  must_read(options.device, source.settings.model);
  const auto device = open_device(options.device, {.threads = options.threads});
  const auto prompt = fixed_prompt(source.settings.model);
  const auto before = options.dtype == Store::q8_0
                          ? logits_in_parts(rounded_to_blocks(source), prompt, *device)
                          : logits_in_parts(source, prompt, *device, rounding_of(made, options));
  const auto after = logits_in_parts(made, prompt, *device);
  // Megatron's has logits for the rows that pad a vocabulary, too.
  const auto words = std::size_t(source.settings.model.vocabulary),
             rows = std::size_t(made.settings.model.vocabulary), places = before.size() / words;
  if (rows < words || after.size() != places * rows)
    fail(Kind::internal, "checkpoint convert: the model read gives ", before.size(), " logits, the one made ",
         after.size());
  Compared out;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double difference = std::abs(double(after[i / words * rows + i % words]) - before[i]);
    if (!(difference <= out.difference)) out.difference = difference;  // a NaN stays
    out.greatest = std::max(out.greatest, std::abs(double(before[i])));
  }
  return out;
}

// f32 is the same numbers; a half keeps 8 or 11 bits of every weight, and a model adds up what that costs,
// where what is rounded is not what the model multiplies by (gains around zero).
double allowed(const Result& result) {
  const Dtype stored = result.stored, written = result.dtype;
  if (written == stored || written == Dtype::f32) return 1e-4;
  return written == Dtype::bf16 ? 0.25 : 0.05;
}

void report(const Conversion& job, const Result& result, const Compared& compared) {
  const double part = compared.greatest > 0 ? compared.difference / compared.greatest : compared.difference;
  const std::string_view type = result.in_blocks ? "q8_0" : name(result.dtype);
  if (job.options.json)
    std::cout << nlohmann::ordered_json{{"from", job.from.string()},
                                        {"to", result.made.string()},
                                        {"tensors", result.written.tensors},
                                        {"bytes", result.written.bytes},
                                        {"files", result.written.files},
                                        {"dtype", type},
                                        {"tokenizer", result.tokenizer},
                                        {"largest_difference", compared.difference},
                                        {"largest_logit", compared.greatest}}
                     .dump()
              << '\n';
  else
    std::cout << result.made.string() << ": " << result.written.tensors << " tensors, "
              << human_bytes(result.written.bytes) << " of " << type << " in " << result.written.files
              << (result.written.files == 1 ? " file" : " files") << '\n'
              << (result.tokenizer.empty() ? "no tokenizer beside it"
                                           : "tokenizer: " + join(result.tokenizer, ", "))
              << '\n'
              << "read again: the largest difference of a logit is " << compared.difference
              << ", of logits up to " << compared.greatest << '\n';
  if (!(part <= allowed(result)))
    fail(Kind::internal, "checkpoint convert: ", result.made.string(), " does not give the logits of ",
         job.from.string(), ": they differ by ", part, " of the largest; do not use it");
}

/// A conversion that is stopped leaves what it had written under another name: gigabytes, of large models.
void tell_left_over(const fs::path& made) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(made, error);
  const std::string front = is_file ? made.filename().string() + "." : "";
  for (const auto& entry : fs::directory_iterator(is_file ? fs::absolute(made).parent_path() : made, error))
    if (entry.path().filename().string().starts_with(front) && is_partial(entry.path()))
      std::cerr << entry.path().string() << ": " << human_bytes(std::int64_t(entry.file_size(error)))
                << " of a conversion that was stopped, if none runs now; it is of no use\n";
}

Result written(const Conversion& job, const NamedModel& source) {
  if (job.target == Form::weft) return to_weft(job, source);
  if (job.target == Form::gguf) return to_gguf(job, source);
  return job.target == Form::hf ? to_hub(job, source) : to_megatron(job, source);
}

}  // namespace

int convert_checkpoint(Args args) {
  const Conversion job = asked(args);
  exchange::ToldOfTheirs told{.config = job.options.config};
  if (job.source == Form::hf) told.program = exchange::Program::hugging_face;
  const NamedModel source = find_model(job.from, told);
  for (const std::string& notice : source.notices) std::cerr << spelled(notice) << '\n';
  const Result result = written(job, source);
  tell_left_over(job.to);
  report(job, result, compare(source, find_model(job.to), job.options));
  return static_cast<int>(Exit::done);
}

Topic convert_topic() {
  ConvertOptions options;
  const Fields fields(options);
  Topic topic{"convert FROM TO", {}};
  for (const auto& field : fields.all())
    topic.options.push_back({flag_of(*field), value_name(*field), help_with_default(*field)});
  return topic;
}

}  // namespace weft::cli
