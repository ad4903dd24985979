// Opening a pass forgets whatever an earlier trip left behind.
#include "weft/nn/pass.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft {

void Pass::open(const Batch& batch, const StepPlace& place, Watch* watch) {
  saved_.clear();
  own_kept_.clear();
  kept_ = &own_kept_;
  batch_ = &batch;
  place_ = place;
  losses_.clear();
  logits_ = {};
  watch_ = watch;
  beside_ = nullptr;
  round_ = 0;
  forgetful_ = again_ = pays_meanwhile_ = false;
}

void Pass::open_again(const Pass& outer) {
  open(*outer.batch_, outer.place_);
  again_ = true;
  round_ = outer.round_;
  debts_ = outer.debts_;
  kept_ = outer.kept_;
  beside_ = outer.beside_;
  pays_meanwhile_ = outer.pays_meanwhile_;
}

const Tensor& Pass::kept(int layer) const {
  const auto found = std::ranges::find(*kept_, address_of(layer), &Kept::layer);
  if (found == kept_->end()) fail(Kind::internal, "pass: nothing was kept of layer ", layer);
  return found->x;
}

}  // namespace weft
