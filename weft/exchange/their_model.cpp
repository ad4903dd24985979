#include "weft/exchange/their_model.h"

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/checkpoint/find.h"
#include "weft/exchange/deepspeed/model.h"
#include "weft/exchange/gguf/model.h"
#include "weft/exchange/hub_weights.h"
#include "weft/exchange/megatron/weights.h"

namespace weft::exchange {
namespace {

namespace fs = std::filesystem;

TheirModel hugging_face(const fs::path& directory) {
  const HubConfig config = read_hub_config(directory);
  return {.program = Program::hugging_face,
          .model = config.model,
          .hub = config,
          .says = directory.string() + ": its config.json",
          .tokenizer = directory,
          .notices = config.notices,
          .open = [directory, config] { return std::make_unique<HubWeights>(directory, config); }};
}

std::optional<TheirRun> run_of(const std::shared_ptr<megatron::Checkpoint>& checkpoint,
                               const ModelConfig& model) {
  const bool settled =
      !checkpoint->first_moments().all().empty() && !checkpoint->second_moments().all().empty();
  if (!settled && !checkpoint->has_states_to_settle()) return {};
  const megatron::Arguments& args = checkpoint->arguments();
  if (args.word("optimizer", "adam") != "adam") return {};
  TheirRun out{.step = checkpoint->step(),
               .updates = checkpoint->updates(),
               .consumed = args.whole("consumed_train_samples"),
               .skipped = args.whole("skipped_train_samples"),
               .validated = args.whole("consumed_valid_samples"),
               .seed = args.whole("seed", 1234),
               .batch = args.whole("global_batch_size"),
               .micro_batch = args.whole("micro_batch_size"),
               .open_states = {}};
  out.beta1 = args.real("adam_beta1", out.beta1);
  out.beta2 = args.real("adam_beta2", out.beta2);
  out.epsilon = args.real("adam_eps", out.epsilon);
  out.weight_decay = args.real("weight_decay", out.weight_decay);
  out.clip = args.real("clip_grad", out.clip);
  if (!settled) out.settle = [checkpoint] { return checkpoint->settle(); };
  out.open_states = [checkpoint, model] {
    std::vector<std::unique_ptr<TheirWeights>> states;
    for (const megatron::Part part : {megatron::Part::first_moments, megatron::Part::second_moments})
      states.push_back(std::make_unique<megatron::Weights>(checkpoint, model, part));
    return states;
  };
  return out;
}

TheirModel of_megatron(const fs::path& directory) {
  const auto checkpoint = std::make_shared<megatron::Checkpoint>(*megatron::find_iteration(directory));
  const ModelConfig model = megatron::model_of(checkpoint->arguments(), family_of(checkpoint->model()));
  const fs::path iteration = checkpoint->iteration().directory;
  return {.program = Program::megatron,
          .model = model,
          .says = checkpoint->arguments().who() + ": its args",
          .tokenizer = iteration / "tokenizer",
          .notices = {text(iteration.string(), ": the model after ", checkpoint->step(), " steps")},
          .open = [checkpoint, model] { return std::make_unique<megatron::Weights>(checkpoint, model); },
          .run = run_of(checkpoint, model)};
}

}  // namespace

std::string_view whose(Program program) {
  switch (program) {
    case Program::hugging_face:
      return "Hugging Face's";
    case Program::megatron:
      return "Megatron's";
    case Program::llama_cpp:
      return "llama.cpp's";
    case Program::deepspeed:
      break;
  }
  return "DeepSpeed's";
}

// Whoever trains a Hugging Face model by DeepSpeed may find both in one directory: that of DeepSpeed has
// more.
std::optional<Program> program_of(const fs::path& directory) {
  if (gguf::is_gguf_file(directory)) return Program::llama_cpp;
  if (checkpoint::step_directories(directory).empty() && deepspeed::find_step(directory))
    return Program::deepspeed;
  if (is_hub_directory(directory)) return Program::hugging_face;
  if (checkpoint::step_directories(directory).empty() && megatron::find_iteration(directory))
    return Program::megatron;
  return std::nullopt;
}

TheirModel read_theirs(const fs::path& directory, const ToldOfTheirs& told) {
  const auto program = told.program ? told.program : program_of(directory);
  if (!program)
    fail(Kind::usage, directory.string(), ": holds no model of Hugging Face's, Megatron's or DeepSpeed's");
  if (*program == Program::llama_cpp) return gguf::model_of(directory);
  if (*program == Program::deepspeed)
    return deepspeed::model_of(directory, deepspeed::find_step(directory).value(), told.config);
  return *program == Program::megatron ? of_megatron(directory) : hugging_face(directory);
}

std::vector<std::string> load_their_model(const fs::path& directory, const ModelConfig& run,
                                          std::span<const checkpoint::Named> mine, Communicator& world) {
  TheirModel theirs = read_theirs(directory);
  must_agree(run, theirs.model, theirs.says);
  const auto weights = theirs.open();
  load_theirs(*weights, mine, world);
  theirs.notices.insert(theirs.notices.end(), weights->notices().begin(), weights->notices().end());
  return std::move(theirs.notices);
}

}  // namespace weft::exchange
