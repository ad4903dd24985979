#include "weft/nn/encoder_memory.h"

#include "weft/ops/elementwise.h"
#include "weft/ops/embedding.h"
#include "weft/tensor/host.h"

namespace weft {

Flow EncoderMemory::forward(Pass& pass, const Flow& in) {
  auto [y, stats] = norm_.forward(in.hidden);
  pass.see("final norm of the encoder", -1, y);
  pass.save(Saved{in.hidden, stats});
  return {.memory = y};
}

// The encoder's biases were its own: their gradient begins behind this.
Flow EncoderMemory::backward(Pass& pass, const Flow& dout) {
  const Saved saved = pass.take<Saved>();
  const Norm::Slopes slopes = norm_.backward_and_rounded(dout.memory, {}, {saved.x, saved.stats}, true);
  return {.hidden = slopes.dx, .rounded = slopes.rounded};
}

RelativeBiases::RelativeBiases(Parameter table, const std::vector<std::int32_t>& buckets, Device& device)
    : table_(std::move(table)), buckets_(from_host(device, {std::ssize(buckets)}, buckets)) {}

Flow RelativeBiases::forward(Pass&, const Flow& in) {
  const Tensor rows = ops::gather(table_.value, buckets_);
  Flow out = in;
  out.biases = empty(rows.device(), {rows.dim(1), rows.dim(0)});
  ops::copy_into(out.biases, rows.permute({1, 0}));
  return out;
}

Flow RelativeBiases::backward(Pass& pass, const Flow& dout) {
  if (table_.grad.wanted())
    pass.weight_grads().owe([sink = &table_.grad, biases = dout.biases, buckets = buckets_] {
      ops::scatter_add_into(sink->sum(), ops::contiguous(biases.permute({1, 0})), buckets);
      sink->added();
    });
  Flow d = dout;
  d.biases = {};
  return d;
}

}  // namespace weft
