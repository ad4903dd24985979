// Dropout by address, alone and with a bias and a residual.
#include "weft/backend/cpu/fast/drops.h"

namespace weft::fast::WEFT_ISA {
namespace {

[[gnu::flatten]] void dropout(Out y, In x, const DropRow& row, std::int64_t n) {
  map_kept(Outs<1>{{y}}, {row, x, {nullptr, x.type}}, n,
           [=](auto at, auto keep) { return Values<1>{{keep(load(x, at))}}; });
}

[[gnu::flatten]] void bias_dropout_add(Out out, In x, const float* bias, In residual, const DropRow& row,
                                       std::int64_t n) {
  map_kept(Outs<1>{{out}}, {row, x, residual}, n, [=](auto at, auto keep) {
    F in = load(x, at);
    if (bias) in = in + along(bias, at);
    return Values<1>{{load(residual, at) + keep(in)}};
  });
}

}  // namespace

extern const DropoutLoops dropouts;
const DropoutLoops dropouts = {.dropout = dropout, .bias_dropout_add = bias_dropout_add};

}  // namespace weft::fast::WEFT_ISA
