// Finds out what a directory is, builds its model and fills it.
#include "weft/cli/read_model.h"

#include "weft/base/error.h"
#include "weft/checkpoint/step.h"
#include "weft/model/gpt.h"
#include "weft/train/resume_hub.h"
#include "weft/train/resume_weights.h"
#include "weft/train/save_facts.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

NamedModel found_hub(const fs::path& directory) {
  NamedModel out{.path = directory, .hub = exchange::read_hub_config(directory)};
  out.settings.model = out.hub->model;
  out.settings.data.tokenizer = tokenizer_in(directory);
  out.notices = out.hub->notices;
  return out;
}

NamedModel found_step(const fs::path& directory) {
  NamedModel out;
  out.path = checkpoint_step(directory, out.notices);
  const std::string facts = checkpoint::Step(out.path).facts();
  out.settings = facts_from_json(facts, out.path.string()).configuration;
  complete(out.settings.model);
  return out;
}

Dtype dtype_of(Precision precision) {
  return precision == Precision::f32 ? Dtype::f32 : precision == Precision::bf16 ? Dtype::bf16 : Dtype::f16;
}

// What concerns training only is left out.
ModelConfig to_read(ModelConfig model, Precision precision) {
  model.recompute = {};
  model.exact = false;
  model.precision = precision;
  return model;
}

}  // namespace

NamedModel find_model(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) fail(Kind::usage, directory.string(), ": is no directory");
  return exchange::is_hub_directory(directory) ? found_hub(directory) : found_step(directory);
}

ReadModel::ReadModel(const NamedModel& named, Precision precision, Device& device)
    : device_(device),
      config_(to_read(named.settings.model, precision)),
      stage_(build_gpt(config_, {.first_layer = 0, .layers = config_.layers}, {.tp = solo_}, device)) {
  weights_ = std::make_unique<Weights>([this](const VisitParameter& visit) { stage_.each_parameter(visit); },
                                       device, dtype_of(precision), Weights::For::reading);
  if (named.hub)
    (void)load_hub_weights(named.path, named.settings.model, *weights_, solo_);
  else
    (void)load_weights(named.path, *weights_, solo_);
}

}  // namespace weft::cli
