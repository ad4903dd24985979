// The tasks of the delta rule and of state spaces over the threads, the memory they work in, and the numbers
// of a step on their way in and out.
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
  return ready(rows) && ready({&in.q, &in.k, &in.v}) && all_floats({&in.decay}) &&
         (in.corrects() ? all_floats({&in.rate}) : in.skip.contiguous()) && in.speed.contiguous() &&
         in.shift.contiguous() && in.q.elements() > 0 && in.v.elements() > 0;
}

/// Heads of a state space that a task has at most, whatever the number of threads: some models have all of
/// theirs in one group. Products of q and k are made once a task.
constexpr std::int64_t most_state_heads = 8;
std::int64_t parts_of(const DeltaJob& job) { return pieces(job.r, job.heads); }

DeltaJob delta_job(const DeltaIn& in) {
  DeltaJob job;
  job.s = in.v.dim(0);
  job.b = in.v.dim(1);
  job.g = in.v.dim(2);
  job.r = in.v.dim(3);
  job.d = in.q.dim(3);
  job.d_value = in.v.dim(4);
  job.corrects = in.corrects();
  job.heads = job.corrects ? job.r : pieces(job.r, pieces(job.r, most_state_heads));
  job.q = attention_rows(in.q);
  job.k = attention_rows(in.k);
  job.v = attention_rows(in.v);
  job.scale = in.scale;
  job.step = row_step(job.d);
  job.step_value = row_step(job.d_value);
  job.numbers = round_up(job.s, padding);
  job.rows = round_up(job.s, delta_chunk) + slack;
  return job;
}

void lay_out_common(Layout& layout, const DeltaJob& job, DeltaPlaces& at) {
  const std::int64_t rows = delta_chunk + slack;
  for (std::int64_t* place : {&at.raw, &at.rate, &at.log_keep}) *place = layout.take(job.heads * job.numbers);
  for (std::int64_t* place : {&at.slowness, &at.skip}) *place = layout.take(job.heads);
  for (std::int64_t* place : {&at.q, &at.k})
    *place = layout.take((at.kept_step > 0 ? job.rows : rows) * job.step);
  at.k_turned = layout.take(round_up(job.d, padding) * delta_square);
  at.p = layout.take(rows * delta_square);
  for (std::int64_t* place : {&at.written, &at.o}) *place = layout.take(rows * job.step_value);
  at.factors = layout.take(8 * rows + round_up(std::max(job.d, job.d_value), padding) + slack);
}
/// What the delta rule has besides.
void lay_out_rule(Layout& layout, DeltaPlaces& at) {
  for (std::int64_t* place : {&at.kk, &at.qk, &at.fade, &at.n})
    *place = layout.take((delta_chunk + slack) * delta_square);
}
void lay_out_slopes(Layout& layout, const DeltaJob& job, DeltaPlaces& at) {
  const std::int64_t rows = delta_chunk + slack, padded_value = round_up(job.d_value, padding);
  for (std::int64_t* place : {&at.ddecay, &at.drate, &at.dspeed})
    *place = layout.take(job.heads * job.numbers);
  at.dmemory_turned = layout.take(padded_value * job.step);
  at.written_turned = layout.take(padded_value * delta_square);
  for (std::int64_t* place : {&at.dout, &at.y}) *place = layout.take(rows * job.step_value);
  at.by_q = layout.take(rows * job.step);
}
/// Floats of a memory that products add to.
std::int64_t held_memory(const DeltaJob& job) { return (round_up(job.d, padding) + slack) * job.step_value; }

DeltaPlaces forward_places(const DeltaJob& job) {
  DeltaPlaces at;
  Layout layout;
  lay_out_common(layout, job, at);
  if (job.corrects)
    lay_out_rule(layout, at);
  else
    at.qk = layout.take((delta_chunk + slack) * delta_square);
  at.memory = layout.take(job.heads * held_memory(job));
  if (job.corrects) at.missing = layout.take((delta_chunk + slack) * job.step_value);
  at.floats = layout.total();
  return at;
}
/// With memory and missing of every chunk.
DeltaPlaces rule_backward_places(const DeltaJob& job) {
  const std::int64_t rows = delta_chunk + slack, padded = round_up(job.d, padding),
                     end = slack * job.step_value, kept = pieces(job.s, delta_chunk) * job.r;
  DeltaPlaces at;
  Layout layout;
  lay_out_common(layout, job, at);
  lay_out_rule(layout, at);
  at.memory = layout.take(kept * padded * job.step_value + end);
  at.missing = layout.take(kept * delta_chunk * job.step_value + end);
  lay_out_slopes(layout, job, at);
  at.dmemory = layout.take(job.r * held_memory(job));
  at.memory_turned = layout.take(round_up(job.d_value, padding) * job.step);
  for (std::int64_t* place : {&at.by_k, &at.by_end, &at.dk, &at.dq}) *place = layout.take(rows * job.step);
  at.floats = layout.total();
  return at;
}
/// Of every chunk one head's memory at a time.
DeltaPlaces state_backward_places(const DeltaJob& job) {
  const std::int64_t chunks = pieces(job.s, delta_chunk), end = slack * job.step,
                     squares = (chunks * delta_chunk + slack) * delta_square;
  DeltaPlaces at;
  Layout layout;
  at.kept_step = job.step;
  lay_out_common(layout, job, at);
  lay_out_slopes(layout, job, at);
  at.fade = layout.take((delta_chunk + slack) * delta_square);
  for (std::int64_t* place : {&at.qk, &at.pairs}) *place = layout.take(squares);
  at.memory = layout.take(chunks * round_up(job.d_value, padding) * job.step + end);
  at.dmemory = layout.take(held_memory(job));
  at.dq = layout.take(2 * job.rows * job.step);
  at.dk = at.dq + job.rows * job.step;
  at.floats = layout.total();
  return at;
}
DeltaPlaces backward_places(const DeltaJob& job) {
  return job.corrects ? rule_backward_places(job) : state_backward_places(job);
}

std::int64_t tasks_of(const DeltaJob& job) { return job.b * job.g * parts_of(job); }
DeltaTask task_of(const DeltaJob& job, std::int64_t i) {
  const std::int64_t group = i / parts_of(job), head = i % parts_of(job) * job.heads;
  return {group / job.g, group % job.g, head, std::min(job.heads, job.r - head)};
}
/// Sums over the steps of every head and sequence: of dspeed, dshift and dskip.
constexpr std::int64_t sums_of_head = 3;
std::int64_t sum_bytes(const DeltaJob& job) {
  return round_up(sums_of_head * job.b * job.g * job.r * std::int64_t(sizeof(double)), 64);
}
/// dq and dk of a group whose tasks are not all done.
std::int64_t carried(const DeltaJob& job) { return parts_of(job) > 1 ? 2 * job.rows * job.step : 0; }

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
  return task.sequence * x.stride(1) + task.group * x.stride(2) + (task.head + head) * x.stride(3);
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
  const DeltaPlaces& at = job.places;
  for (std::int64_t head = 0; head < task.heads; ++head) {
    const std::int64_t weight = task.group * job.r + task.head + head, first = head * job.numbers;
    float* raw = workspace + at.raw + first;
    gather(raw, job.numbers, in.decay, offset_of(in.decay, task, head));
    for (std::int64_t i = 0; i < job.s; ++i) raw[i] += in.shift.data<float>()[weight];
    if (job.corrects)
      gather(workspace + at.rate + first, job.numbers, in.rate, offset_of(in.rate, task, head));
    else
      workspace[at.skip + head] = in.skip.data<float>()[weight];
    workspace[at.slowness + head] = float(std::exp(double(in.speed.data<float>()[weight])));
  }
}
/// f(memory of a head in the workspace, its place in the tensor)
template <class F>
void each_memory(const DeltaJob& job, const DeltaTask& task, float* workspace, const F& f) {
  const std::int64_t before = (task.sequence * job.g + task.group) * job.r + task.head;
  for (std::int64_t head = 0; head < task.heads; ++head)
    f(workspace + job.places.memory + head * held_memory(job), (before + head) * job.d * job.d_value);
}
void load_memories(const DeltaJob& job, const DeltaTask& task, const DeltaIn& in, float* workspace) {
  std::fill_n(workspace + job.places.memory, task.heads * held_memory(job), 0.0F);
  if (!in.memory) return;
  each_memory(job, task, workspace, [&](float* to, std::int64_t place) {
    const float* from = in.memory.data<float>() + place;
    for (std::int64_t row = 0; row < job.d; ++row)
      std::copy_n(from + row * job.d_value, job.d_value, to + row * job.step_value);
  });
}
void store_memories(const DeltaJob& job, const DeltaTask& task, const DeltaIn& in, float* workspace) {
  if (!in.memory) return;
  each_memory(job, task, workspace, [&](const float* from, std::int64_t place) {
    float* to = in.memory.data<float>() + place;
    for (std::int64_t row = 0; row < job.d; ++row)
      std::copy_n(from + row * job.step_value, job.d_value, to + row * job.d_value);
  });
}
void store_slopes(const DeltaJob& job, const DeltaTask& task, const DeltaGrads& grads, float* workspace,
                  double* sums) {
  for (std::int64_t head = 0; head < task.heads; ++head) {
    const std::int64_t first = head * job.numbers;
    const float* ddecay = workspace + job.places.ddecay + first;
    const float* dspeed = workspace + job.places.dspeed + first;
    const float* drate = workspace + job.places.drate + first;
    scatter(grads.ddecay, offset_of(grads.ddecay, task, head), ddecay);
    if (job.corrects) scatter(grads.drate, offset_of(grads.drate, task, head), drate);
    const std::int64_t weight = (task.sequence * job.g + task.group) * job.r + task.head + head;
    double* mine = sums + sums_of_head * weight;
    std::fill_n(mine, sums_of_head, 0.0);
    for (std::int64_t i = 0; i < job.s; ++i) {
      mine[0] += double(dspeed[i]);
      mine[1] += double(ddecay[i]);
      mine[2] += double(drate[i]);
    }
  }
}
/// Over sequences, in ascending order.
void add_sums(const DeltaJob& job, const DeltaGrads& grads, const double* sums) {
  const Tensor* const to[sums_of_head] = {&grads.dspeed, &grads.dshift, &grads.dskip};
  const std::int64_t weights = job.g * job.r;
  for (std::int64_t of = 0; of < (job.corrects ? 2 : sums_of_head); ++of)
    for (std::int64_t weight = 0; weight < weights; ++weight) {
      double sum = 0;
      for (std::int64_t sequence = 0; sequence < job.b; ++sequence)
        sum += sums[sums_of_head * (sequence * weights + weight) + of];
      to[of]->data<float>()[weight] += float(sum);
    }
}

bool ready_for(const Tensor& o, const DeltaIn& in) { return ready_for({&o}, in); }
bool ready_for(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) {
  return ready_for({&dout, &grads.dq, &grads.dk, &grads.dv}, in) && all_floats({&grads.ddecay}) &&
         (in.corrects() ? all_floats({&grads.drate}) : grads.dskip.contiguous()) &&
         grads.dspeed.contiguous() && grads.dshift.contiguous();
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
  return sum_bytes(job) + carried(job) * std::int64_t(sizeof(float)) +
         bytes_for(tasks_of(job), threads, backward_places(job).floats);
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
                    const fast::DeltaTask task = fast::task_of(job, i);
                    fast::load_numbers(job, task, in, floats);
                    fast::load_memories(job, task, in, floats);
                    (job.corrects ? loops_.delta.forward : loops_.delta.state_forward)(job, task, floats);
                    fast::store_memories(job, task, in, floats);
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
  auto* carry = reinterpret_cast<float*>(workspace->data() + fast::sum_bytes(job));
  const auto work = [&](std::int64_t i, float* floats) {
    const fast::DeltaTask task = fast::task_of(job, i);
    fast::load_numbers(job, task, in, floats);
    (job.corrects ? loops_.delta.backward : loops_.delta.state_backward)(job, task, floats);
    fast::store_slopes(job, task, grads, floats, sums);
    if (!job.corrects && fast::parts_of(job) == 1) loops_.delta.state_give(job, task, floats + job.places.dq);
  };
  // A group's parts are added up in ascending order.
  const auto add = [&](std::int64_t i, const float* floats) {
    const fast::DeltaTask task = fast::task_of(job, i);
    const fast::Out to = {carry, fast::Type::f32, false};
    const fast::In part = {floats + job.places.dq, fast::Type::f32};
    if (task.head == 0)
      loops_.elementwise.copy(to, part, fast::carried(job));
    else
      loops_.elementwise.add_scaled(to, part, 1, fast::carried(job));
    if (task.head + task.heads == job.r) loops_.delta.state_give(job, task, carry);
  };
  const std::int64_t tasks = fast::tasks_of(job), floats = job.places.floats;
  if (fast::carried(job) == 0)
    fast::share_out(tasks, threads_, floats, carry, work);
  else
    fast::share_out_in_order({tasks, threads_, floats, carry + fast::carried(job)}, work, add);
  fast::add_sums(job, grads, sums);
}

}  // namespace weft
