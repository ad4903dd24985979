// What a backend has not got, it says by name. The table of Kernels is made here, and so are the calls.
#include "weft/tensor/kernels.h"

#include <tuple>
#include <type_traits>
#include <utility>

namespace weft {
namespace {

template <class Op, class... Operands>
class KernelCallOf final : public KernelCall {
 public:
  KernelCallOf(const KernelName& name, Op kernel, std::tuple<Operands...> operands)
      : KernelCall(name), kernel_(kernel), operands_(std::move(operands)) {}
  void on(Kernels& kernels) const override {
    std::apply([&](const auto&... operands) { (kernels.*kernel_)(operands...); }, operands_);
  }
  std::unique_ptr<KernelCall> kept() const override {
    using Kept = KernelCallOf<Op, std::remove_cvref_t<Operands>...>;
    return std::make_unique<Kept>(KernelName{op(), work()}, kernel_,
                                  std::tuple<std::remove_cvref_t<Operands>...>(operands_));
  }

 private:
  Op kernel_;
  std::tuple<Operands...> operands_;
};

}  // namespace

void Kernels::hand_on(const KernelCall& call) {
  fail(Kind::device, call.op(), " is not implemented by the ", name(), " backend");
}

template <class Kernel, class... Operands>
void Kernels::next(const KernelName& name, Kernel kernel, const Operands&... operands) {
  hand_on(KernelCallOf<Kernel, const Operands&...>(name, kernel, {operands...}));
}

}  // namespace weft
