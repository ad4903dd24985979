// A tokenizer whose ids are letters, and models over ranks that say what follows.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/tiny.h"
#include "weft/comm/threads.h"
#include "weft/generate/logits.h"
#include "weft/mesh/mesh.h"
#include "weft/optim/weights.h"
#include "weft/text/tokenizer.h"

namespace weft::testing {

/// Id 0 is A, id 1 is B; parts as a test says.
class LetterWords final : public Tokenizer {
 public:
  using Parts = std::map<std::string, std::int32_t, std::less<>>;
  explicit LetterWords(std::int32_t size, Parts parts = {}) : size_(size), parts_(std::move(parts)) {}
  std::vector<std::int32_t> encode(std::string_view utf8) const override {
    std::vector<std::int32_t> ids;
    for (const char letter : utf8) ids.push_back(letter - 'A');
    return ids;
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string out;
    for (const std::int32_t id : ids) out += static_cast<char>('A' + id);
    return out;
  }
  std::int32_t size() const override { return size_; }
  std::optional<std::int32_t> special(std::string_view name) const override {
    const auto found = parts_.find(name);
    return found == parts_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string token(std::int32_t id) const override { return decode({&id, 1}); }

 private:
  std::int32_t size_;
  Parts parts_;
};

/// A whole model on this rank.
struct Alone {
  ModelConfig config;
  std::unique_ptr<Device> device = open_device("cpu", {.threads = 1});
  SoloCommunicator solo;
  TinyModel model{config, *device};
  explicit Alone(ModelConfig of) : config(std::move(of)) {}
  ModelHere here() { return {model.stages(), config, {solo}, *device}; }
};

/// How a model is cut: `parts` go round the ranks of the pipeline.
struct CutModel {
  ParallelLayout::Degrees degrees;
  std::vector<StagePart> parts;
  Between between = Between::whole;
};

/// What every rank says, with the weights that Alone has.
template <class Result>
std::vector<Result> said_by_ranks(const ModelConfig& config, const CutModel& cut,
                                  const std::function<Result(const ModelHere&)>& say) {
  const ParallelLayout layout(cut.degrees);
  std::vector<Result> found(std::size_t(layout.world()));
  run_as_threads(layout.world(), [&](Communicator& world) {
    const ProcessMesh mesh(layout, world);
    const auto device = open_device("cpu", {.threads = 1});
    const Circles circles{mesh.along(Axis::tp), cut.between, {&mesh.along(Axis::cp)}};
    std::map<int, Stage> stages;
    std::vector<int> home;
    for (int i = 0; i < int(cut.parts.size()); ++i) {
      home.push_back(i % cut.degrees.pp);
      if (home.back() == mesh.place(Axis::pp))
        stages[i] = kind_of(config).build(config, cut.parts[std::size_t(i)], circles, *device);
    }
    Weights weights(
        [&](const VisitParameter& visit) {
          for (const auto& [number, stage] : stages) stage.each_parameter(visit);
        },
        *device, Dtype::f32, Weights::For::reading);
    weights.initialize(7);
    const PipelineHere pipeline{home, cut.parts, mesh.along(Axis::pp)};
    found[std::size_t(world.rank())] =
        say({stages, config, {circles.tp, circles.between}, *device, circles.context, &pipeline});
  });
  return found;
}

}  // namespace weft::testing
