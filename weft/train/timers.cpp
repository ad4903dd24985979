#include "weft/train/timers.h"

namespace weft {
namespace {

using pipe::Do;

StepPart part_of(Do what) {
  switch (what) {
    case Do::forward:
      return StepPart::forward_compute;
    case Do::backward:
    case Do::backward_input:
    case Do::backward_weight:
      return StepPart::backward_compute;
    case Do::post_activation:
    case Do::recv_activation:
      return StepPart::forward_recv;
    case Do::send_activation:
      return StepPart::forward_send;
    case Do::post_gradient:
    case Do::recv_gradient:
      return StepPart::backward_recv;
    case Do::send_gradient:
      return StepPart::backward_send;
  }
  return StepPart::forward_backward;
}

}  // namespace

std::string_view name(StepPart part) {
  static constexpr std::array<std::string_view, parts_of_step> names = {"forward-backward",
                                                                        "batch-generator",
                                                                        "forward-compute",
                                                                        "backward-compute",
                                                                        "forward-recv",
                                                                        "forward-send",
                                                                        "backward-recv",
                                                                        "backward-send",
                                                                        "embedding-grads-all-reduce",
                                                                        "all-grads-sync",
                                                                        "optimizer-clip-main-grad",
                                                                        "optimizer-count-zeros",
                                                                        "optimizer-inner-step",
                                                                        "optimizer"};
  return names[std::size_t(part)];
}

void StepTimers::took(const pipe::Action& action, Stretch stretch) {
  add(part_of(action.what), std::move(stretch));
}

std::array<double, parts_of_step> StepTimers::seconds() {
  std::array<double, parts_of_step> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = spent_[i].seconds();
  for (const StepPart part : {StepPart::clip, StepPart::count_zeros, StepPart::inner_step})
    out[std::size_t(StepPart::optimizer)] += out[std::size_t(part)];
  return out;
}

void StepTimers::forget() {
  for (Spent& one : spent_) one.forget();
}

}  // namespace weft
