// The fields of an optimizer's settings.
#pragma once

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"
#include "weft/optim/config.h"

namespace weft {

template <class Visitor>
void describe(Visitor& v, LionConfig& c) {
  v("beta1", c.beta1, OnResume::step, "lion: share of momentum in the direction", legal::below_one);
  v("beta2", c.beta2, OnResume::step, "lion: decay of momentum", legal::below_one);
}

template <class Visitor>
void describe(Visitor& v, LambConfig& c) {
  v("least", c.least, OnResume::step, "lamb: smallest trust ratio of a tensor", legal::not_negative);
  v("most", c.most, OnResume::step, "lamb: largest trust ratio of a tensor", legal::positive);
  v("bias_correction", c.bias_correction, OnResume::step,
    "lamb: early steps are longer, as moments start at zero");
  v("epsilon_inside", c.epsilon_inside, OnResume::step, "lamb: epsilon is added before the root");
}

template <class Visitor>
void describe(Visitor& v, MuonConfig& c) {
  v("momentum", c.momentum, OnResume::step, "muon: decay of momentum", legal::below_one);
  v("nesterov", c.nesterov, OnResume::step, "muon: look one step ahead");
  v("split_qkv", c.split_qkv, OnResume::step, "muon: queries, keys and values are matrices of their own");
  v("scale", c.scale, OnResume::step, "muon: length of an update, by the matrix's shape");
  v("extra_scale", c.extra_scale, OnResume::step, "muon: factor of every update", legal::positive);
  v("ranks", c.ranks, OnResume::step, "muon: how a matrix that ranks hold parts of is made orthogonal");
  v("precision", c.precision, OnResume::step, "muon: products in bf16 (medium) or f32 (high, highest)");
  v("rounds", c.rounds, OnResume::step, "muon: coefficients of the Newton-Schulz steps");
  v("steps", c.steps, OnResume::step, "muon: Newton-Schulz steps", legal::size);
  v("others", c.others, OnResume::told, "muon: who updates words and vectors");
}

template <class Visitor>
void describe(Visitor& v, OneBitConfig& c) {
  v("freeze", c.freeze, OnResume::step,
    "1-bit Adam and LAMB: the step from which momentum travels in one bit", legal::size);
  v("keep", c.keep, OnResume::step, "1-bit LAMB: how long the mean of a tensor's trust ratios remembers",
    legal::below_one);
  v("least_factor", c.least_factor, OnResume::step,
    "1-bit LAMB: least factor of a trust ratio that is frozen", legal::not_negative);
  v("most_factor", c.most_factor, OnResume::step,
    "1-bit LAMB: greatest factor of a trust ratio that is frozen", legal::positive);
  v("factor_step", c.factor_step, OnResume::step,
    "1-bit LAMB: most change of that factor in a step, as a part of it", legal::below_one);
}

template <class Visitor>
void describe(Visitor& v, ZeroOneConfig& c) {
  v("freeze", c.freeze, OnResume::step, "0/1 Adam: steps in which second moments learn", legal::size);
  v("variance_steps", c.variance_steps, OnResume::step,
    "0/1 Adam: how often second moments learn before they learn half as often", legal::size);
  v("local_steps", c.local_steps, OnResume::step,
    "0/1 Adam: steps of ranks alone before they meet half as often", legal::size);
  v("most_local", c.most_local, OnResume::step, "0/1 Adam: most steps from one meeting to the next",
    legal::size);
}

template <class Visitor>
void describe(Visitor& v, OffloadConfig& c) {
  v("on", c.on, OnResume::free,
    "optimizer states, and masters of weights of fewer bits, lie in files on a disk");
  v("directory", c.directory, OnResume::free, "where such files lie; they have no names and go with the run");
  v("fraction", c.fraction, OnResume::free, "how much of them lies in files; the rest stays in memory",
    legal::fraction);
  v("buffers", c.buffers, OnResume::free,
    "windows of a million numbers of each that memory has room for: as many as a layer has let the next "
    "layer's be read while it computes",
    legal::from_to(3, 65536));
  v("weights", c.weights, OnResume::free,
    "weights lie in files too, and are read as a layer needs them, the next layer's meanwhile");
}

template <class Visitor>
void describe(Visitor& v, QkClipConfig& c) {
  v("on", c.on, OnResume::step,
    "after a step, weights of queries and keys shrink in heads whose greatest score is above a threshold");
  v("alpha", c.alpha, OnResume::step, "the power of that factor that queries take; keys take the rest",
    legal::fraction);
  v("threshold", c.threshold, OnResume::step, "how large a head's scores may be before its weights shrink",
    legal::positive);
}

template <class Visitor>
void describe(Visitor& v, OptimizerConfig& c) {
  v("kind", c.kind, OnResume::told, "how gradients become updates");
  v("beta1", c.beta1, OnResume::step, "decay of the first moment", legal::below_one);
  v("beta2", c.beta2, OnResume::step, "decay of the second moment", legal::below_one);
  v("epsilon", c.epsilon, OnResume::step, "added to the root of the second moment", legal::positive);
  v("momentum", c.momentum, OnResume::step, "momentum of sgd", legal::below_one);
  v("weight_decay", c.weight_decay, OnResume::told, "decay of matrices and embeddings", legal::rate);
  v("weight_decay_start", c.weight_decay_start, OnResume::told, "weight decay at the start, where it grows",
    legal::rate);
  v("weight_decay_end", c.weight_decay_end, OnResume::told, "weight decay at the end, where it grows",
    legal::rate);
  v("weight_decay_growth", c.weight_decay_growth, OnResume::told, "how weight decay grows");
  v("decoupled_decay", c.decoupled_decay, OnResume::step,
    "take the decay off the weights, not through the gradient");
  v("decay_qk_norm", c.decay_qk_norm, OnResume::step, "decay the gains of query and key norms too");
  v("clip", c.clip, OnResume::step, "largest global norm of the gradient (0: not clipped)",
    legal::not_negative);
  v("any_moment_type", c.any_moment_type, OnResume::step, "moments of Adam may have fewer bits");
  v("first_moment", c.first_moment, OnResume::step, "what Adam's first moment is kept in");
  v("second_moment", c.second_moment, OnResume::step, "what Adam's second moment is kept in");
  v.group("lion", c.lion);
  v.group("lamb", c.lamb);
  v.group("muon", c.muon);
  v.group("onebit", c.onebit);
  v.group("zeroone", c.zeroone);
  v.group("offload", c.offload);
  v.group("qk_clip", c.qk_clip);
}

}  // namespace weft
