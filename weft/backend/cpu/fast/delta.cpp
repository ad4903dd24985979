// The delta rule's tasks over the threads, the memory they work in, and the numbers of a step on their way in
// and out.
#include "weft/backend/cpu/fast/delta.h"

#include <algorithm>
#include <cmath>

#include "weft/backend/cpu/fast/attention_plan.h"
#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/layout.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"
#include "weft/base/error.h"

namespace weft {
namespace fast {
namespace {

bool ready_for(std::initializer_list<const Tensor*> rows, const DeltaIn& in) {
  return in.corrects() && ready(rows) && ready({&in.q, &in.k, &in.v}) && all_floats({&in.decay, &in.rate}) &&
         in.speed.contiguous() && in.shift.contiguous() && in.q.elements() > 0 && in.v.elements() > 0;
}

DeltaJob delta_job(const DeltaIn& in) {
  DeltaJob job;
  job.s = in.v.dim(0);
  job.b = in.v.dim(1);
  job.g = in.v.dim(2);
  job.r = in.v.dim(3);
  job.d = in.q.dim(3);
  job.d_value = in.v.dim(4);
  job.q = attention_rows(in.q);
  job.k = attention_rows(in.k);
  job.v = attention_rows(in.v);
  job.scale = in.scale;
  job.step = row_step(job.d);
  job.step_value = row_step(job.d_value);
  job.numbers = round_up(job.s, padding);
  return job;
}

/// Chunks whose memories are kept.
enum class Keeps : std::uint8_t { one, all };

void lay_out_common(Layout& layout, const DeltaJob& job, DeltaPlaces& at, Keeps keeps) {
  const std::int64_t rows = delta_chunk + slack, square = rows * delta_square;
  const std::int64_t chunks = keeps == Keeps::all ? pieces(job.s, delta_chunk) : 1;
  for (std::int64_t* place : {&at.raw, &at.rate, &at.log_keep}) *place = layout.take(job.r * job.numbers);
  at.slowness = layout.take(job.r);
  for (std::int64_t* place : {&at.q, &at.k}) *place = layout.take(rows * job.step);
  at.k_turned = layout.take(round_up(job.d, padding) * delta_square);
  for (std::int64_t* place : {&at.kk, &at.qk, &at.fade, &at.n, &at.p}) *place = layout.take(square);
  for (std::int64_t* place : {&at.written, &at.o}) *place = layout.take(rows * job.step_value);
  at.factors = layout.take(8 * rows + round_up(job.d, padding) + slack);
  const std::int64_t memory = round_up(job.d, padding) * job.step_value, end = slack * job.step_value;
  at.memory = layout.take(keeps == Keeps::all ? chunks * job.r * memory + end : job.r * (memory + end));
  at.missing =
      layout.take((keeps == Keeps::all ? chunks * job.r * delta_chunk : delta_chunk) * job.step_value + end);
}

DeltaPlaces forward_places(const DeltaJob& job) {
  DeltaPlaces at;
  Layout layout;
  lay_out_common(layout, job, at, Keeps::one);
  at.floats = layout.total();
  return at;
}
DeltaPlaces backward_places(const DeltaJob& job) {
  const std::int64_t rows = delta_chunk + slack, padded = round_up(job.d, padding),
                     padded_value = round_up(job.d_value, padding);
  DeltaPlaces at;
  Layout layout;
  lay_out_common(layout, job, at, Keeps::all);
  for (std::int64_t* place : {&at.ddecay, &at.drate, &at.dspeed}) *place = layout.take(job.r * job.numbers);
  at.dmemory = layout.take(job.r * (padded + slack) * job.step_value);
  for (std::int64_t* place : {&at.memory_turned, &at.dmemory_turned})
    *place = layout.take(padded_value * job.step);
  at.written_turned = layout.take(padded_value * delta_square);
  for (std::int64_t* place : {&at.dout, &at.y}) *place = layout.take(rows * job.step_value);
  for (std::int64_t* place : {&at.by_k, &at.by_q, &at.by_end, &at.dk, &at.dq})
    *place = layout.take(rows * job.step);
  at.floats = layout.total();
  return at;
}

std::int64_t tasks_of(const DeltaJob& job) { return job.b * job.g; }
/// Sums over the steps of every head and sequence: of dspeed and of dshift.
std::int64_t sums_of(const DeltaJob& job) { return 2 * job.b * job.g * job.r; }
std::int64_t sum_bytes(const DeltaJob& job) {
  return round_up(sums_of(job) * std::int64_t(sizeof(double)), 64);
}

/// Elements of decay and its like, [s, b, g, r] in whatever steps.
template <class Visit>
void visit(const Tensor& x, const Visit& visit) {
  if (x.dtype() == Dtype::f32)
    visit(x.data<float>());
  else if (x.dtype() == Dtype::bf16)
    visit(x.data<bf16>());
  else
    visit(x.data<f16>());
}
std::int64_t offset_of(const Tensor& x, const DeltaTask& task, std::int64_t head) {
  return task.sequence * x.stride(1) + task.group * x.stride(2) + head * x.stride(3);
}
/// One head's numbers as f32; zeros fill up the last register.
void gather(float* to, std::int64_t numbers, const Tensor& x, std::int64_t offset) {
  visit(x, [&](const auto* from) {
    for (std::int64_t i = 0; i < x.dim(0); ++i) to[i] = float(from[offset + i * x.stride(0)]);
  });
  std::fill(to + x.dim(0), to + numbers, 0.0F);
}
void scatter(const Tensor& x, std::int64_t offset, const float* from) {
  visit(x, [&](auto* to) {
    using T = std::remove_reference_t<decltype(*to)>;
    for (std::int64_t i = 0; i < x.dim(0); ++i) to[offset + i * x.stride(0)] = T(from[i]);
  });
}

void load_numbers(const DeltaJob& job, const DeltaTask& task, const DeltaIn& in, float* workspace) {
  for (std::int64_t head = 0; head < job.r; ++head) {
    const std::int64_t weight = task.group * job.r + head, first = head * job.numbers;
    float* raw = workspace + job.places.raw + first;
    gather(raw, job.numbers, in.decay, offset_of(in.decay, task, head));
    for (std::int64_t i = 0; i < job.s; ++i) raw[i] += in.shift.data<float>()[weight];
    gather(workspace + job.places.rate + first, job.numbers, in.rate, offset_of(in.rate, task, head));
    workspace[job.places.slowness + head] = float(std::exp(double(in.speed.data<float>()[weight])));
  }
}
void store_slopes(const DeltaJob& job, const DeltaTask& task, const DeltaGrads& grads, float* workspace,
                  double* sums) {
  for (std::int64_t head = 0; head < job.r; ++head) {
    const std::int64_t first = head * job.numbers;
    const float* ddecay = workspace + job.places.ddecay + first;
    const float* dspeed = workspace + job.places.dspeed + first;
    scatter(grads.ddecay, offset_of(grads.ddecay, task, head), ddecay);
    scatter(grads.drate, offset_of(grads.drate, task, head), workspace + job.places.drate + first);
    double* mine = sums + 2 * ((task.sequence * job.g + task.group) * job.r + head);
    mine[0] = mine[1] = 0;
    for (std::int64_t i = 0; i < job.s; ++i) {
      mine[0] += double(dspeed[i]);
      mine[1] += double(ddecay[i]);
    }
  }
}
/// Over sequences, in ascending order.
void add_sums(const DeltaJob& job, const DeltaGrads& grads, const double* sums) {
  for (std::int64_t weight = 0; weight < job.g * job.r; ++weight) {
    double speed = 0, shift = 0;
    for (std::int64_t sequence = 0; sequence < job.b; ++sequence) {
      speed += sums[2 * (sequence * job.g * job.r + weight)];
      shift += sums[2 * (sequence * job.g * job.r + weight) + 1];
    }
    grads.dspeed.data<float>()[weight] += float(speed);
    grads.dshift.data<float>()[weight] += float(shift);
  }
}

bool ready_for(const Tensor& o, const DeltaIn& in) { return ready_for({&o}, in); }
bool ready_for(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) {
  return ready_for({&dout, &grads.dq, &grads.dk, &grads.dv}, in) &&
         all_floats({&grads.ddecay, &grads.drate}) && grads.dspeed.contiguous() && grads.dshift.contiguous();
}

}  // namespace

std::int64_t delta_workspace(const Tensor& o, const DeltaIn& in, int threads) {
  if (!ready_for(o, in)) return 0;
  const DeltaJob job = delta_job(in);
  return bytes_for(tasks_of(job), threads, forward_places(job).floats);
}
std::int64_t delta_backward_workspace(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in,
                                      int threads) {
  if (!ready_for(grads, dout, in)) return 0;
  const DeltaJob job = delta_job(in);
  return sum_bytes(job) + bytes_for(tasks_of(job), threads, backward_places(job).floats);
}

}  // namespace fast

void FastKernels::delta_rule(const Tensor& o, const DeltaIn& in) {
  if (!fast::ready_for(o, in)) return ReferenceKernels::delta_rule(o, in);
  fast::DeltaJob job = fast::delta_job(in);
  job.o = fast::attention_rows(o);
  job.places = fast::forward_places(job);
  const StorageRef workspace = o.device().allocate(fast::delta_workspace(o, in, threads_), Use::workspace);
  fast::share_out(fast::tasks_of(job), threads_, job.places.floats,
                  reinterpret_cast<float*>(workspace->data()), [&](std::int64_t i, float* floats) {
                    const fast::DeltaTask task = {i / job.g, i % job.g};
                    fast::load_numbers(job, task, in, floats);
                    loops_.delta.forward(job, task, floats);
                  });
}

void FastKernels::delta_rule_backward(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) {
  if (!fast::ready_for(grads, dout, in)) return ReferenceKernels::delta_rule_backward(grads, dout, in);
  fast::DeltaJob job = fast::delta_job(in);
  job.dout = fast::attention_rows(dout);
  job.dq = fast::attention_rows(grads.dq);
  job.dk = fast::attention_rows(grads.dk);
  job.dv = fast::attention_rows(grads.dv);
  job.places = fast::backward_places(job);
  const StorageRef workspace =
      dout.device().allocate(fast::delta_backward_workspace(grads, dout, in, threads_), Use::workspace);
  auto* sums = reinterpret_cast<double*>(workspace->data());
  fast::share_out(fast::tasks_of(job), threads_, job.places.floats,
                  reinterpret_cast<float*>(workspace->data() + fast::sum_bytes(job)),
                  [&](std::int64_t i, float* floats) {
                    const fast::DeltaTask task = {i / job.g, i % job.g};
                    fast::load_numbers(job, task, in, floats);
                    loops_.delta.backward(job, task, floats);
                    fast::store_slopes(job, task, grads, floats, sums);
                  });
  fast::add_sums(job, grads, sums);
}

}  // namespace weft
