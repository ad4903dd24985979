// The gated delta rule and state spaces on a desk, both ways.
#pragma once

#include "tests/backend/conformance.h"

namespace weft::conformance {

/// The types of what is written and of the gradient of results, and what the former may be off by.
struct Written {
  Dtype dtype, dout;
  Tolerance within;
};

inline void remember(Desk& desk, const DeltaIn& in, const Written& as) {
  // A sum over steps, heads and channels is as exact as its f32 terms are, and what is small there is small
  // beside the others.
  const Tolerance sums{2e-5, 2e-5 * double(in.v.dim(0))};
  const Tensor o = desk.blank(in.v.shape(), as.dtype), dout = desk.normal(in.v.shape(), as.dout);
  desk.kernels().delta_rule(o, in);
  desk.result("o", o, as.within);
  const auto like = [&](const Tensor& x) { return desk.blank(x.shape(), as.dtype); };
  const DeltaGrads grads{.dq = like(in.q),
                         .dk = like(in.k),
                         .dv = like(in.v),
                         .ddecay = like(in.decay),
                         .drate = in.corrects() ? like(in.rate) : Tensor(),
                         .dspeed = desk.normal(in.speed.shape()),
                         .dshift = desk.normal(in.shift.shape()),
                         .dskip = in.corrects() ? Tensor() : desk.normal(in.skip.shape())};
  desk.kernels().delta_rule_backward(grads, dout, in);
  desk.result("dq", grads.dq, as.within);
  desk.result("dk", grads.dk, as.within);
  desk.result("dv", grads.dv, as.within);
  desk.result("ddecay", grads.ddecay, as.within);
  if (in.corrects()) desk.result("drate", grads.drate, as.within);
  desk.result("dspeed", grads.dspeed, sums);
  desk.result("dshift", grads.dshift, sums);
  if (!in.corrects()) desk.result("dskip", grads.dskip, sums);
}

}  // namespace weft::conformance
