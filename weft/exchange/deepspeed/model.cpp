#include "weft/exchange/deepspeed/model.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/exchange/deepspeed/checkpoint.h"
#include "weft/exchange/hub_weights.h"

namespace weft::exchange::deepspeed {
namespace {

namespace fs = std::filesystem;
using Kept = std::shared_ptr<Checkpoint>;

/// One of its three parts, which keeps the rest alive.
std::shared_ptr<const HubSource> part(const Kept& checkpoint, Tensors& (Checkpoint::*which)()) {
  return {checkpoint, &(checkpoint.get()->*which)()};
}

constexpr std::pair<Tensors& (Checkpoint::*)(), const char*> averages[] = {
    {&Checkpoint::first_moments, ".m"}, {&Checkpoint::second_moments, ".v"}};

/// Why its run cannot go on; empty: it can.
std::string why_not(Checkpoint& checkpoint) {
  const bool moments = !checkpoint.first_moments().empty() && !checkpoint.second_moments().empty();
  if (!moments && !checkpoint.step().universal && checkpoint.groups().empty())
    return "it holds no *_optim_states.pt files";
  if (!moments) return "its optimizer has no exp_avg and exp_avg_sq, so it was not Adam";
  if (std::ranges::any_of(checkpoint.groups(), &AdamGroup::greatest))
    return "its Adam kept the greatest averages (amsgrad), which weft's does not";
  return "";
}

TheirRun run_of(const Kept& checkpoint, const HubConfig& hub) {
  const ModelStates& model = checkpoint->model();
  TheirRun out{.step = model.steps > 0 ? model.steps : checkpoint->updates(),
               .updates = checkpoint->updates(),
               .consumed = model.samples,
               .seed = {},
               .batch = model.batch,
               .micro_batch = model.micro_batch,
               .clip = model.clip,
               .open_states = {}};
  for (const AdamGroup& group : checkpoint->groups()) {
    out.beta1 = group.beta1;
    out.beta2 = group.beta2;
    out.epsilon = group.epsilon;
  }
  out.weight_decay = 0;
  for (const AdamGroup& group : checkpoint->groups())
    out.weight_decay = std::max(out.weight_decay, group.decay);
  out.open_states = [checkpoint, hub] {
    std::vector<std::unique_ptr<TheirWeights>> states;
    for (const auto& [which, ending] : averages)
      states.push_back(std::make_unique<HubWeights>(part(checkpoint, which), hub, ending));
    return states;
  };
  return out;
}

/// What a run that goes on may do otherwise than before, and where it stood.
std::vector<std::string> notices_of(const Checkpoint& checkpoint, const std::string& why_alone) {
  const std::string where = checkpoint.step().directory.string();
  std::vector<std::string> out{text(where, ": the model after ", checkpoint.model().steps, " steps")};
  if (!why_alone.empty()) {
    out.push_back(text(where, ": weights alone are read: ", why_alone));
    return out;
  }
  const std::vector<AdamGroup>& groups = checkpoint.groups();
  if (!groups.empty())
    out.push_back(text(where, ": its learning rate stands at ", groups.front().rate,
                       "; schedules are not in it, so give them as before"));
  if (std::ranges::any_of(groups, [&](const AdamGroup& one) { return one.rate != groups.front().rate; }))
    out.push_back(text(where, ": its groups of parameters have different learning rates; all will have one"));
  if (groups.size() == 1 && groups.front().decay > 0)
    out.push_back(text(where, ": its weight decay was for all parameters; biases and norms will have none"));
  return out;
}

}  // namespace

TheirModel model_of(const fs::path& directory, const Step& step, const fs::path& config) {
  const fs::path file = find_config(directory, step, config);
  HubConfig hub = hub_config_from_json(read_file(file), file.string());
  const auto checkpoint = std::make_shared<Checkpoint>(step);
  for (auto which : {&Checkpoint::first_moments, &Checkpoint::second_moments, &Checkpoint::weights})
    (checkpoint.get()->*which)().rename(text_name(hub));
  settle(hub, [&]() -> const HubSource& { return checkpoint->weights(); });
  hub.blocks.reset();  // of the files that training began with
  const std::string why_alone = why_not(*checkpoint);
  TheirModel out{.program = Program::deepspeed,
                 .model = hub.model,
                 .hub = hub,
                 .says = file.string(),
                 .tokenizer = file.parent_path(),
                 .notices = hub.notices,
                 .open = [checkpoint, hub] {
                   return std::make_unique<HubWeights>(part(checkpoint, &Checkpoint::weights), hub);
                 }};
  for (std::string& sentence : notices_of(*checkpoint, why_alone)) out.notices.push_back(std::move(sentence));
  if (why_alone.empty()) out.run = run_of(checkpoint, hub);
  return out;
}

}  // namespace weft::exchange::deepspeed
