// Dropout by address, alone and with a bias and a residual.
#include "weft/backend/cpu/fast/drops.h"

namespace weft::fast::WEFT_ISA {
namespace {

void dropout(Out y, In x, const DropRow& row, std::int64_t n) {
  each_kept(row, n, [=](auto at, auto keep) { store(y, at, keep(load(x, at))); });
}

void bias_dropout_add(Out out, In x, const float* bias, In residual, const DropRow& row, std::int64_t n) {
  each_kept(row, n, [=](auto at, auto keep) {
    F in = load(x, at);
    if (bias) in = in + load(bias, at);
    store(out, at, load(residual, at) + keep(in));
  });
}

}  // namespace

extern const DropoutLoops dropouts;
const DropoutLoops dropouts = {.dropout = dropout, .bias_dropout_add = bias_dropout_add};

}  // namespace weft::fast::WEFT_ISA
