// Opening a pass forgets whatever an earlier trip left behind.
#include "weft/nn/pass.h"

namespace weft {

void Pass::open(const Batch& batch, const StepPlace& place, Watch* watch) {
  saved_.clear();
  batch_ = &batch;
  place_ = place;
  losses_.clear();
  logits_ = {};
  watch_ = watch;
  round_ = 0;
  forgetful_ = again_ = false;
}

void Pass::open_again(const Pass& outer) {
  open(*outer.batch_, outer.place_);
  again_ = true;
  round_ = outer.round_;
  debts_ = outer.debts_;
}

}  // namespace weft
