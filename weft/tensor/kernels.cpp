// What a backend has not got, it says by name. The table of Kernels is made here, and so are the calls.
#include "weft/tensor/kernels.h"

#include <utility>

namespace weft {
namespace {

/// A call whose operands are its own. (They are captured, not a tuple's: forty tuples and what applies them
/// took a compiler seconds.)
template <class Act>
class KeptCall final : public KernelCall {
 public:
  KeptCall(const KernelName& name, Act act) : KernelCall(name), act_(std::move(act)) {}
  void on(Kernels& kernels) const override { act_(kernels); }
  std::unique_ptr<KernelCall> kept() const override {
    return std::make_unique<KeptCall>(KernelName{op(), work()}, act_);
  }

 private:
  Act act_;
};

/// One that lives as long as its caller's operands; `keep` makes another of copies.
template <class Act, class Keep>
class PassingCall final : public KernelCall {
 public:
  PassingCall(const KernelName& name, const Act& act, const Keep& keep)
      : KernelCall(name), act_(act), keep_(keep) {}
  void on(Kernels& kernels) const override { act_(kernels); }
  std::unique_ptr<KernelCall> kept() const override { return keep_(); }

 private:
  const Act& act_;
  const Keep& keep_;
};

}  // namespace

void Kernels::hand_on(const KernelCall& call) {
  fail(Kind::device, call.op(), " is not implemented by the ", name(), " backend");
}

void Kernels::loss_and_gradient(const Tensor& loss, const Tensor& logits, const LossTargets& targets,
                                VocabularyPart part) {
  const auto a_token = [&] { return empty(logits.device(), {loss.elements()}); };
  const LossParts parts{a_token(), a_token(), a_token()};
  loss_max(parts, logits, part);
  loss_sums(parts, logits, targets.ids, part);
  loss_finish(loss, parts);
  loss_backward(logits, parts, targets, part);
}

template <class Kernel, class... Operands>
void Kernels::next(const KernelName& name, Kernel kernel, const Operands&... operands) {
  const auto act = [&](Kernels& other) { (other.*kernel)(operands...); };
  const auto keep = [&]() -> std::unique_ptr<KernelCall> {
    auto later = [kernel, ... own = operands](Kernels& other) { (other.*kernel)(own...); };
    return std::make_unique<KeptCall<decltype(later)>>(name, std::move(later));
  };
  hand_on(PassingCall(name, act, keep));
}

}  // namespace weft
