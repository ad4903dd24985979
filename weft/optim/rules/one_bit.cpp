// Letters of one view go out together: four words each, whatever the model.
#include "weft/optim/rules/one_bit.h"

#include <algorithm>

#include "weft/ops/elementwise.h"

namespace weft {
namespace {

constexpr std::array both{View::dense, View::experts};

std::vector<OneBitLetter> one_each(const Weights& weights, std::span<const OneBitTensor> tensors) {
  std::vector<OneBitLetter> out;
  for (const OneBitTensor& tensor : tensors)
    out.push_back({tensor.slot->parameter, weights.blocks()[tensor.block].kind.view, tensor.elements()});
  return out;
}

}  // namespace

std::vector<OneBitTensor> one_bit_tensors(const Weights& weights) {
  std::vector<OneBitTensor> out;
  for (const View view : both)
    for (std::size_t i = 0; i < weights.blocks().size(); ++i) {
      const WeightBlock& block = weights.blocks()[i];
      if (block.kind.view != view || block.kind.role == Role::kept) continue;
      for (const WeightSlot& slot : block.slots) out.push_back({i, &slot});
    }
  return out;
}

OneBitMail::OneBitMail(const Weights& weights, std::span<const OneBitTensor> tensors)
    : OneBitMail(weights, one_each(weights, tensors)) {}

OneBitMail::OneBitMail(const Weights& weights, std::span<const OneBitLetter> letters)
    : weights_(weights), letters_(letters.begin(), letters.end()) {
  dense_ = std::size_t(std::ranges::count(letters_, View::dense, &OneBitLetter::view));
  const ProcessMesh* mesh = weights.data().mesh;
  if (mesh == nullptr) return;
  of_ranks_.readers = {&mesh->along(data_axes(View::dense)), CutUp::states};
  for (const View view : both) {
    if (!mesh->layout().has(view)) continue;
    Communicator& circle = mesh->along(data_axes(view));
    std::vector<std::int64_t> elements;
    for (const OneBitLetter& letter : letters_)
      if (letter.view == view) elements.push_back(letter.elements);
    if (circle.size() > 1 && !elements.empty())
      signs_[std::size_t(view)].emplace(weights.device(), circle, elements);
  }
}

void OneBitMail::reduce(std::span<const Tensor> x) {
  for (const View view : both)
    if (auto& signs = signs_[std::size_t(view)])
      signs->reduce(x.subspan(begin(view), signs->worker_errors().size()));
}

void OneBitMail::forget_errors() {
  for (auto& signs : signs_)
    if (signs) signs->forget_errors();
}

void OneBitMail::each_error(const VisitHeld& visit) const {
  for (const View view : both) {
    const auto& signs = signs_[std::size_t(view)];
    for (std::size_t i = 0; signs && i < signs->worker_errors().size(); ++i) {
      const Parameter& first = *letters_[begin(view) + i].first;
      visit(of_rank(first, view, ".worker_error", signs->worker_errors()[i]));
      visit(of_rank(first, view, ".server_error", signs->server_errors()[i]));
    }
  }
}

Held OneBitMail::of_rank(const Parameter& parameter, View view, const char* suffix,
                         const Tensor& memory) const {
  Shard row{.global = {1, 1, memory.elements()}, .offset = {0, 0, 0}, .local = {1, 1, memory.elements()}};
  if (const ProcessMesh* mesh = weights_.data().mesh) {
    const Communicator& data = mesh->along(data_axes(view));
    const Communicator& tensor = mesh->along(view == View::dense ? Axis::tp : Axis::etp);
    row.global = {data.size(), tensor.size(), memory.elements()};
    row.offset = {data.rank(), tensor.rank(), 0};
  }
  if (parameter.tied) row.replica = weights_.ties().copy(parameter);
  return {parameter.name + suffix, parameter, memory, {{row, 0}}, of_ranks_, true};
}

void add_to_momentum(const UpdateRun& run, const Tensor& m, double beta, double grad_scale) {
  ops::scale_in_place(m, float(beta));
  ops::add_scaled_into(m, run.grads, float((1 - beta) * grad_scale));
}

// sqrt(v) / sqrt(v) where there is any, else 0.
void find_alive(const Tensor& out, const Tensor& x, const Tensor& v) {
  ops::root_into(out, v, 0);
  ops::adam_direction_into({x, out, v, {}}, out, {.beta1 = 1, .beta2 = 1, .epsilon = 1e-30F});
}

void leave_out_dead(const UpdateRun& run, const Tensor& m, const Tensor& v) {
  find_alive(run.grads, run.master, v);
  ops::multiply_into(m, m, run.grads);
}

void step_without_corrections(const UpdateRun& run, const AdamState& state, const OptimizerConfig& config,
                              Moments moments, double grad_scale) {
  const bool learn = moments == Moments::learn;
  ops::adam_into(state, run.grads,
                 {.rate = float(run.rate),
                  .beta1 = learn ? float(config.beta1) : 1,
                  .beta2 = learn ? float(config.beta2) : 1,
                  .epsilon = float(config.epsilon),
                  .decay = float(run.decay),
                  .grad_scale = float(grad_scale)});
}

void direction_into_grads(const UpdateRun& run, const Tensor& m, const Tensor& v, double epsilon,
                          double decay) {
  ops::adam_direction_into({run.master, m, v, {}}, run.grads,
                           {.beta1 = 1, .beta2 = 1, .epsilon = float(epsilon), .decay = float(decay)});
}

}  // namespace weft
