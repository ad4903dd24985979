// Attention's tasks over the threads of the device, and the memory they work in.
#include "weft/backend/cpu/fast/attention.h"

#include <algorithm>

#include "weft/backend/cpu/fast/attention_plan.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft::fast {

namespace {

/// The draws of all rows of the batch stand at the start of the workspace.
std::int64_t draw_bytes(const AttentionArgs& how, std::int64_t rows) {
  if (how.dropout == 0) return 0;
  return (rows * std::int64_t(sizeof(AttentionDraw)) + 63) / 64 * 64;
}

/// Writes them; what follows is for the threads.
float* set_draws(AttentionJob& job, const AttentionArgs& how, std::byte* workspace) {
  const std::int64_t bytes = draw_bytes(how, job.b);
  if (bytes > 0) {
    auto* draws = reinterpret_cast<AttentionDraw*>(workspace);
    const std::int64_t* samples = how.samples.data<std::int64_t>();
    for (std::int64_t row = 0; row < job.b; ++row) {
      Address at = how.at;
      at.sample = std::uint64_t(samples[row * how.samples.stride(0)]);
      const Draw draw(at);
      draws[row] = {{draw.key()[0], draw.key()[1]}, {draw.upper()[0], draw.upper()[1]}};
    }
    job.dropout.draws = draws;
  }
  return reinterpret_cast<float*>(workspace + bytes);
}

void set_dropout(AttentionJob& job, const AttentionArgs& how) {
  if (how.dropout == 0) return;
  job.dropout.wanted = true;
  job.dropout.dropped = share(double(how.dropout));
  job.dropout.kept = 1 / (1 - how.dropout);
  job.dropout.head0 = how.head0;
  job.dropout.query0 = how.query0;
  job.dropout.key0 = how.key0;
}

void set_grads(AttentionJob& job, const AttentionGrads& grads) {
  job.dq = attention_rows(grads.dq);
  job.dk = attention_rows(grads.dk);
  job.dv = attention_rows(grads.dv);
  if (grads.dbias) job.dbias = plan_bias_sums(job);
  job.accumulate = grads.accumulate;
}

std::int64_t bias_floats(const AttentionJob& job) {
  return job.dbias.wanted ? job.g * job.r * job.dbias.stripes * job.dbias.row : 0;
}
std::int64_t bias_bytes(const AttentionJob& job) { return bias_floats(job) * std::int64_t(sizeof(float)); }

/// What follows is for the threads.
float* set_bias_sums(AttentionJob& job, float* workspace) {
  const std::int64_t floats = bias_floats(job);
  job.dbias.at = workspace;
  std::fill_n(workspace, floats, 0.0F);
  return workspace + floats;
}

/// dbias += the sums of all stripes, in ascending order.
void add_bias_sums(const AttentionJob& job, const Tensor& dbias, int threads) {
  share_out(job.g * job.r, threads, 0, nullptr, [&](std::int64_t head, float*) {
    for (std::int64_t stripe = 0; stripe < job.dbias.stripes; ++stripe) {
      const std::int64_t from = stripe * attention_stripe;
      const std::int64_t queries = std::min(job.sq - from, attention_stripe + attention_queries);
      const float* sums = job.dbias.at + (head * job.dbias.stripes + stripe) * job.dbias.row;
      float* to = dbias.data<float>() + head * dbias.stride(0) + job.bias.zero + from - (job.sk - 1);
      for (std::int64_t i = 0; i < queries + job.sk - 1; ++i) to[i] += sums[i];
    }
  });
}

void set_forward(AttentionJob& job, const AttentionOut& out) {
  job.o = attention_rows(out.o);
  job.lse = attention_sums(out.lse);
  if (out.greatest) job.greatest = attention_sums(out.greatest);
}

/// q, k and v are of one type.
AttentionForward* forward_of(const AttentionLoops& loops, const AttentionJob& job) {
  const bool pairs = loops.forward_pairs != nullptr && job.q.type == Element::bf16;
  return pairs ? loops.forward_pairs : loops.forward;
}
AttentionBackward* backward_of(const AttentionLoops& loops, const AttentionJob& job) {
  const bool pairs = loops.backward_pairs != nullptr && job.q.type == Element::bf16;
  return pairs && job.dout.type == Element::bf16 ? loops.backward_pairs : loops.backward;
}

std::int64_t backward_bytes(const BackwardPlan& plan, int threads) {
  return bytes_for(std::max({plan.all, plan.keys, plan.queries}), threads, plan.places.floats);
}

/// Task i of a kind: heads fastest but for the parts of one head, so that a head's keys stay near.
AttentionTask task_of(const BackwardPlan& plan, const AttentionJob& job, AttentionShare share,
                      std::int64_t i) {
  AttentionTask task;
  const std::int64_t parts = share == AttentionShare::all    ? 1
                             : share == AttentionShare::keys ? plan.chunks
                                                             : plan.stripes;
  task.part = share == AttentionShare::queries ? parts - 1 - i % parts : i % parts;
  i /= parts;
  if (share == AttentionShare::queries) {
    task.head = i % job.r;
    i /= job.r;
  }
  task.group = i % job.g;
  task.row = i / job.g;
  task.rows = share == AttentionShare::keys ? 1 : plan.rows;
  return task;
}

}  // namespace

void attention(const AttentionLoops& loops, const AttentionOut& out, const Attended& in,
               const AttentionArgs& how) {
  if (out.o.elements() == 0) return;
  Device& device = in.q.device();
  AttentionJob job = attention_job(in, how);
  set_forward(job, out);
  set_dropout(job, how);
  const ForwardPlan plan = plan_forward(job, device.threads());
  job.forward = plan.places;
  job.stripe = plan.stripe;
  const std::int64_t bytes = bytes_for(plan.tasks, device.threads(), plan.places.floats);
  const StorageRef workspace = device.allocate(draw_bytes(how, job.b) + bytes, Use::workspace);
  float* room = set_draws(job, how, workspace->data());
  const std::int64_t heads = job.g * job.r;
  // The last stripe first: under a causal mask it is the longest.
  AttentionForward* const forward = forward_of(loops, job);
  const auto task = [&](std::int64_t i, float* floats) {
    const std::int64_t stripe = plan.stripes - 1 - i % plan.stripes;
    const std::int64_t head = i / plan.stripes % heads;
    forward(job, i / plan.stripes / heads, head, stripe * plan.stripe, floats);
  };
  share_out(plan.tasks, device.threads(), plan.places.floats, room, task);
}

void attention_backward(const AttentionLoops& loops, const AttentionGrads& grads, const Tensor& dout,
                        const AttentionOut& out, const Attended& in, const AttentionArgs& how) {
  if (in.q.elements() == 0 && in.k.elements() == 0) return;
  Device& device = in.q.device();
  AttentionJob job = attention_job(in, how);
  set_forward(job, out);
  set_grads(job, grads);
  set_dropout(job, how);
  job.dout = attention_rows(dout);
  const BackwardPlan plan = plan_backward(job, device.threads());
  job.backward = plan.places;
  job.chunk = plan.chunk;
  const StorageRef workspace = device.allocate(
      draw_bytes(how, job.b) + bias_bytes(job) + backward_bytes(plan, device.threads()), Use::workspace);
  float* room = set_bias_sums(job, set_draws(job, how, workspace->data()));
  AttentionBackward* const backward = backward_of(loops, job);
  const auto run = [&](std::int64_t tasks, AttentionShare share) {
    const auto task = [&](std::int64_t i, float* floats) {
      backward(job, share, task_of(plan, job, share, i), floats);
    };
    share_out(tasks, device.threads(), plan.places.floats, room, task);
  };
  run(plan.all, AttentionShare::all);
  run(plan.keys, AttentionShare::keys);
  run(plan.queries, AttentionShare::queries);
  if (job.dbias.wanted && job.sk > 0) add_bias_sums(job, grads.dbias, device.threads());
}

void merge_attention(const AttentionLoops& loops, const AttentionOut& into, const AttentionOut& part) {
  if (into.o.elements() == 0) return;
  AttentionJob to, from;
  set_forward(to, into);
  set_forward(from, part);
  to.sq = into.o.dim(0);
  to.r = into.o.dim(3);
  to.d_value = into.o.dim(4);
  const std::int64_t heads = into.o.dim(2) * to.r;
  share_out(into.o.dim(1) * heads, into.o.device().threads(), 0, nullptr,
            [&](std::int64_t i, float*) { loops.merge(to, from, i / heads, i % heads); });
}

std::int64_t attention_workspace(const Attended& in, const AttentionArgs& how, int threads) {
  if (in.q.elements() == 0) return 0;
  AttentionJob job = attention_job(in, how);
  set_dropout(job, how);
  const ForwardPlan plan = plan_forward(job, threads);
  return draw_bytes(how, job.b) + bytes_for(plan.tasks, threads, plan.places.floats);
}

std::int64_t attention_backward_workspace(const AttentionGrads& grads, const Attended& in,
                                          const AttentionArgs& how, int threads) {
  if (in.q.elements() == 0 && in.k.elements() == 0) return 0;
  AttentionJob job = attention_job(in, how);
  set_grads(job, grads);
  set_dropout(job, how);
  return draw_bytes(how, job.b) + bias_bytes(job) + backward_bytes(plan_backward(job, threads), threads);
}

}  // namespace weft::fast
