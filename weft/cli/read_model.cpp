// Finds out what a directory is, builds its model and fills it.
#include "weft/cli/read_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/checkpoint/load.h"
#include "weft/checkpoint/step.h"
#include "weft/model/kinds.h"
#include "weft/ops/elementwise.h"
#include "weft/train/keep_tokenizer.h"
#include "weft/train/resume_theirs.h"
#include "weft/train/resume_weights.h"
#include "weft/train/save_facts.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

void add_ends(const nlohmann::json& given, const fs::path& file, std::vector<std::int32_t>& ends) {
  for (const auto& id : given.is_array() ? given : nlohmann::json::array({given})) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > INT32_MAX)
      fail(Kind::data, file.string(), ": 'eos_token_id': expected an id or a list of ids");
    if (std::ranges::find(ends, id.get<std::int32_t>()) == ends.end()) ends.push_back(id.get<std::int32_t>());
  }
}

Generation generation_in(const fs::path& folder, std::vector<std::int32_t> ends = {}) {
  Generation out{
      .ends = std::move(ends), .repetition_penalty = {}, .file = folder / exchange::generation_file};
  if (!fs::is_regular_file(out.file)) {
    out.file.clear();
    return out;
  }
  const auto json = nlohmann::json::parse(read_file(out.file), nullptr, false);
  if (!json.is_object()) fail(Kind::data, out.file.string(), ": is no JSON object");
  const auto given = [&](const char* key) {
    const auto at = json.find(key);
    return at == json.end() ? nlohmann::json() : *at;
  };
  if (const auto ends_given = given("eos_token_id"); !ends_given.is_null())
    add_ends(ends_given, out.file, out.ends);
  const auto penalty = given("repetition_penalty");
  if (penalty.is_null() || penalty == 1) return out;
  if (!penalty.is_number() || !(penalty.get<double>() > 0))
    fail(Kind::data, out.file.string(), ": 'repetition_penalty': expected a number greater than 0");
  out.repetition_penalty = penalty.get<double>();
  return out;
}

/// A step keeps that of the model which its run began with, beside the tokenizer.
Generation generation_of_step(const fs::path& step, const TokenizerConfig& tokenizer) {
  Generation kept = generation_in(step / "tokenizer");
  const fs::path first = tokenizer.model.empty() ? tokenizer.vocab_file : tokenizer.model;
  return kept.file.empty() && !first.empty() ? generation_in(first.parent_path()) : kept;
}

NamedModel found_theirs(const fs::path& directory, const exchange::ToldOfTheirs& told) {
  NamedModel out{.path = directory, .theirs = exchange::read_theirs(directory, told)};
  const exchange::TheirModel& theirs = *out.theirs;
  out.settings.model = theirs.model;
  out.settings.data.tokenizer = tokenizer_in(theirs.tokenizer);
  out.generation =
      generation_in(theirs.tokenizer, theirs.hub ? theirs.hub->ends : std::vector<std::int32_t>());
  out.notices = theirs.notices;
  return out;
}

NamedModel found_step(const fs::path& directory) {
  NamedModel out;
  out.path = checkpoint_step(directory, out.notices);
  const std::string facts = checkpoint::OpenStep(out.path).facts();
  out.settings = facts_from_json(facts, out.path.string()).configuration;
  complete(out.settings.model);
  for (std::string& sentence : take_kept_tokenizer(out.path, out.settings.data.tokenizer))
    out.notices.push_back(std::move(sentence));
  out.generation = generation_of_step(out.path, out.settings.data.tokenizer);
  return out;
}

// What concerns training only is left out.
ModelConfig to_read(ModelConfig model, Precision precision) {
  model.recompute = {};
  model.exact = false;
  model.precision = precision;
  return model;
}

/// Fills weights from what a person named; another program's directory is looked through once.
class Source {
 public:
  explicit Source(const NamedModel& named) : named_(named) {
    if (named.theirs) theirs_ = named.theirs->open();
  }
  void fill(Weights& weights, Communicator& world) const {
    if (!theirs_) {
      (void)load_weights(named_.path, weights, world);
      return;
    }
    exchange::load_theirs(*theirs_, named_weights(weights), world);
    weights.publish();
  }

 private:
  const NamedModel& named_;
  std::unique_ptr<exchange::TheirWeights> theirs_;
};

}  // namespace

NamedModel find_model(const fs::path& directory, const exchange::ToldOfTheirs& told) {
  std::error_code error;
  if (!fs::is_directory(directory, error) && exchange::program_of(directory) != exchange::Program::llama_cpp)
    fail(Kind::usage, directory.string(),
         fs::exists(directory, error) ? ": is no directory" : ": is not there");
  return exchange::program_of(directory) ? found_theirs(directory, told) : found_step(directory);
}

void read_no_longer(ModelConfig& config, std::int64_t tokens) {
  const bool by_table = config.positions == Positions::rotary || config.positions == Positions::alibi;
  if (!by_table || config.decoder_layers > 0) return;
  config.sequence = config.max_positions = std::min(config.sequence, tokens);
}

ReadModel::ReadModel(const NamedModel& named, Precision precision, Device& device)
    : device_(device), config_(to_read(named.settings.model, precision)) {
  const ModelKind kind = kind_of(config_);
  stages_[0] = kind.build(config_, kind.cut(config_, {}).front(), {.tp = solo_}, device);
  weights_ =
      std::make_unique<Weights>([this](const VisitParameter& visit) { stages_[0].each_parameter(visit); },
                                device, compute_type(precision), Weights::For::reading);
  Source(named).fill(*weights_, solo_);
}

std::vector<float> logits_in_parts(const NamedModel& named, std::span<const std::int32_t> text,
                                   Device& device, const Rounding& rounding) {
  ModelConfig config = to_read(named.settings.model, Precision::f32);
  read_no_longer(config, std::ssize(text));
  SoloCommunicator solo;
  const Source source(named);
  const ModelKind kind = kind_of(config);
  const auto with = [&](const StagePart& part, const ModelInParts::Use& use) {
    const Stage stage = kind.build(config, part, {.tp = solo}, device);
    Weights weights([&](const VisitParameter& visit) { stage.each_parameter(visit); }, device, Dtype::f32,
                    Weights::For::reading);
    source.fill(weights, solo);
    if (rounding)
      stage.each_parameter([&](Parameter& p) {
        ops::copy_into(p.value, ops::cast(ops::cast(p.value, rounding(p.name)), Dtype::f32));
      });
    use(stage);
  };
  return logits_of(ModelInParts{config, {solo}, device, with}, text, std::ssize(text));
}

}  // namespace weft::cli
