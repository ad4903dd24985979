#include "weft/exchange/deepspeed/checkpoint.h"

#include "weft/base/error.h"

namespace weft::exchange::deepspeed {
namespace {

/// What stands in a file as it was multiplied: of its own type, whichever that is.
void add_stored(const Opened& file, const std::string& name, const torch::StoredTensor& stored,
                Tensors& into) {
  const Shape shape = shape_of(stored, file.who + ": " + name);
  if (!stored.contiguous())
    fail(Kind::data, file.who, ": ", name, " has elements that do not lie next to each other");
  into.add(name, shape, stored.held ? stored.dtype : Dtype::u8,
           {{.begin = 0,
             .count = shape.elements(),
             .archive = &file.archive,
             .stored = &stored,
             .first = stored.offset}});
}

}  // namespace

Checkpoint::Checkpoint(const Step& step)
    : step_(step),
      weights_(step.directory.string()),
      first_moments_(step.directory.string()),
      second_moments_(step.directory.string()) {
  const Files files = files_of(step);
  const Opened& model = files_.emplace_back(files.model);
  model_ = model_states(model);
  const Filling into{step_, model_, files_, weights_, first_moments_, second_moments_, updates_, groups_};
  if (step.universal)
    read_universal(into);
  else if (!files.optimizer.empty())
    read_ranks(files, into);
  for (const AdamGroup& group : groups_)
    if (updates_ == 0) updates_ = group.steps;
  take_module(model);
  for (const auto& [second, first] : model_.shared)
    for (Tensors* tensors : {&weights_, &first_moments_, &second_moments_}) tensors->also(second, first);
}

// What nobody learns is there alone; where there is no optimizer's file, so is all the rest.
void Checkpoint::take_module(const Opened& file) {
  const bool all = weights_.empty();
  for (const auto& [key, value] : file.dict(file.top(), "module").entries) {
    const torch::StoredTensor* stored = value.tensor();
    if (key.text() == nullptr || stored == nullptr) {
      fail(Kind::data, file.who, ": its module holds ", value.kind(), " under ", key.kind(),
           ", expected tensors by their names");
    }
    const std::string& name = *key.text();
    if (!all && !model_.buffers.contains(name)) continue;
    if (stored->elements() == 0 && !model_.buffers.contains(name))
      fail(Kind::data, step_.directory.string(),
           ": lacks the zero_pp_rank_*_optim_states.pt files, in which ZeRO-3 keeps all weights");
    if (stored->elements() > 0 && weights_.find(name) == nullptr) add_stored(file, name, *stored, weights_);
  }
}

std::vector<AdamGroup> adam_groups(const Opened& file, const torch::Map& in) {
  std::vector<AdamGroup> out;
  const auto* groups = file.list_or_none(in, "param_groups");
  if (groups == nullptr) return out;
  for (const torch::Value& one : *groups) {
    const torch::Map* group = one.map();
    if (group == nullptr) continue;
    AdamGroup& adam = out.emplace_back();
    adam.rate = file.number(*group, "lr").value_or(0);
    adam.epsilon = file.number(*group, "eps").value_or(adam.epsilon);
    adam.decay = file.number(*group, "weight_decay").value_or(0);
    const auto* betas = file.list_or_none(*group, "betas");
    if (betas != nullptr && betas->size() == 2) {
      adam.beta1 = file.number(betas->front()).value_or(adam.beta1);
      adam.beta2 = file.number(betas->back()).value_or(adam.beta2);
    }
    adam.steps = file.count(*group, "step");
    const torch::Value* greatest = group->find("amsgrad");
    adam.greatest = greatest != nullptr && greatest->boolean() != nullptr && *greatest->boolean();
  }
  return out;
}

}  // namespace weft::exchange::deepspeed
