// The delta rule backward: first the memories before all chunks and what was missing at every step, then
// chunks from the last to the first, with dS the slope of the memory behind the chunk. u = b r; q is times
// the scale.
//
//   y_i   = b_i (rest_i dS^T k_i + sum_(j >= i) p_ji do_j - sum_(j > i) fade_ji (k_j k_i) y_j) = dv_i
//   db_i  = (y_i r_i) / b_i
//   xp_ij = fade_ij do_i u_j  (j <= i),   xm_ij = -fade_ij y_i u_j  (j < i)
//   dq_i  = gamma_i S0 do_i + sum_j xp_ij k_j
//   dk_i  = rest_i dS u_i - gamma_i S0 y_i + sum_j (xp_ji q_j + xm_ji k_j + xm_ij k_j)
//   dS0   = gamma_last dS + sum_i gamma_i (q_i do_i^T - k_i y_i^T)
//
// and log a_m has a slope from all that it fades: from before step m to it or behind it.
#include "weft/backend/cpu/fast/delta_slopes.h"
#include "weft/backend/cpu/fast/loops/delta.h"

namespace weft::fast::WEFT_ISA {
namespace {

/// What forward knew of a chunk and head.
struct Kept {
  float *memory, *missing;
};
Kept kept(const Chunk& c, Index chunk) {
  const Index place = chunk * c.job.r + c.head;
  return {c.at(c.job.places.memory) + place * c.memory_size(),
          c.at(c.job.places.missing) + place * delta_chunk * c.job.step_value};
}

/// Memories before all chunks, in ascending order: a product may write beyond the one it makes, which is made
/// next.
void remember_all(Chunk& c) {
  clear(c.at(c.job.places.memory), c.job.r * c.memory_size());
  for (Index first = 0; first < c.job.s; first += delta_chunk) {
    begin_chunk(c, first);
    for (Index head = 0; head < c.job.r; ++head) {
      begin_head(c, head);
      const Kept here = kept(c, c.index());
      correct(c, here.memory, here.missing);
      if (first + delta_chunk >= c.job.s) continue;
      scale_rows(c, c.at(c.job.places.written), here.missing, c.b);
      remember(c, kept(c, c.index() + 1).memory, here.memory, c.rest);
    }
  }
}

/// y, and with it dv.
void correct_backward(const Chunk& c, const float* dmemory) {
  const DeltaJob& job = c.job;
  const Index step = job.step_value;
  float *y = c.at(job.places.y), *dout = c.at(job.places.dout);
  widen_rows(dout, job.dout, c.head_offset(job.dout), {c.count, job.d_value, step});
  from_memory(c, dmemory);
  from_answers(c);
  scale_rows(c, y, y, c.b);
  solve_up(c, y);
  narrow_rows(job.dv, c.head_offset(job.dv), y, {c.count, job.d_value, step});
}

/// What comes through the memories on either side; a_terms and c_terms are slopes of gamma's and of rest's
/// logarithms.
void through_memories(const Chunk& c, const float* memory, const float* dmemory) {
  const DeltaPlaces& at = c.job.places;
  const Index step = c.job.step, step_value = c.job.step_value;
  float *memory_turned = c.at(at.memory_turned), *dmemory_turned = c.at(at.dmemory_turned);
  for (Index i = 0; i < c.padded; i += width)
    for (Index v = 0; v < c.padded_value; v += width) {
      transpose_square(memory_turned + v * step + i, step, memory + i * step_value + v, step_value);
      transpose_square(dmemory_turned + v * step + i, step, dmemory + i * step_value + v, step_value);
    }
  const auto by = [&](Index to, Index rows, const float* turned) {
    multiply<Start::zero>({c.at(to), step}, c.count, c.registers(), ByRows{c.at(rows), step_value},
                          {turned, step}, c.job.d_value);
  };
  by(at.by_k, at.y, memory_turned);
  by(at.by_q, at.dout, memory_turned);
  by(at.by_end, at.written, dmemory_turned);
  for (Index i = 0; i < c.count; ++i) {
    const F gamma = all(c.gamma[i]), rest = all(c.rest[i]);
    F before = all(0.0F), behind = all(0.0F);
    for (Index x = i * step; x < i * step + c.padded; x += lanes) {
      const F k = load(c.k + x), q = load(c.q + x);
      const F of_k = gamma * load(c.at(at.by_k) + x), of_q = gamma * load(c.at(at.by_q) + x);
      const F of_end = rest * load(c.at(at.by_end) + x);
      before = fused(q, of_q, fused(all(0.0F) - k, of_k, before));
      behind = fused(k, of_end, behind);
      store(c.at(at.dk) + x, (load(c.at(at.dk) + x) + of_end) - of_k);
      store(c.at(at.dq) + x, load(c.at(at.dq) + x) + of_q);
    }
    c.a_terms[i] = sum(before);
    c.c_terms[i] = sum(behind);
  }
}

/// p and n become xp and xm; kk and qk of this head what pairs of steps add to the slopes of all logarithms
/// between them, in fade.
void differentiate_pairs(const Chunk& c) {
  const DeltaPlaces& at = c.job.places;
  for (Index i = 0; i < c.count; ++i)
    for (Index j = 0; j < c.count; j += lanes) {
      const Index here = i * delta_square + j;
      const F fade = load(c.at(at.fade) + here);
      F xp = all(0.0F), xm = all(0.0F), pairs = all(0.0F);
      if (j <= i) {
        const I there = up_to(j, i), earlier = up_to(j, i - 1);
        xp = choose(there, fade * load(c.at(at.p) + here), xp);
        xm = choose(earlier, all(0.0F) - fade * load(c.at(at.n) + here), xm);
        pairs = fused(xm, load(c.at(at.kk) + here), xp * load(c.at(at.qk) + here));
        pairs = choose(earlier, pairs, all(0.0F));
      }
      store(c.at(at.p) + here, xp);
      store(c.at(at.n) + here, xm);
      store(c.at(at.fade) + here, pairs);
    }
}

/// What steps of the chunk give each other.
void through_pairs(const Chunk& c) {
  const DeltaJob& job = c.job;
  const DeltaPlaces& at = job.places;
  float *written_turned = c.at(at.written_turned), *p_rows = c.at(at.p), *n_rows = c.at(at.n);
  transpose(written_turned, delta_square, c.at(at.written), job.step_value, {c.count, c.padded_value});
  multiply_lower(c, p_rows, {c.at(at.dout), job.step_value}, written_turned, job.d_value);
  multiply_lower(c, n_rows, {c.at(at.y), job.step_value}, written_turned, job.d_value);
  differentiate_pairs(c);
  add_earlier(c, c.at(at.dq), p_rows, c.k);
  add_earlier(c, c.at(at.dk), n_rows, c.k);
  add_later(c, c.at(at.dk), p_rows, c.q);
  add_later(c, c.at(at.dk), n_rows, c.k);
}

/// Slopes of the numbers of a step.
void give_numbers(const Chunk& c, const float* missing) {
  const DeltaPlaces& at = c.job.places;
  const F slow = all(c.at(at.slowness)[c.head]);
  for (Index i = 0; i < c.count; ++i)
    c.c_terms[i] = dot(c.at(at.y) + i * c.job.step_value, missing + i * c.job.step_value, c.padded_value);
  for (Index i = 0; i < round_up(c.count, lanes); i += lanes) {
    const F dlog = load(c.a_terms + i), raw = load(c.numbers(at.raw) + i);
    store(c.numbers(at.ddecay) + i, (all(0.0F) - dlog) * slow * sigmoid(raw));
    store(c.numbers(at.dspeed) + i, dlog * load(c.numbers(at.log_keep) + i));
    store(c.numbers(at.drate) + i, load(c.c_terms + i) * (all(1.0F) - load(c.b + i)));
  }
}

/// dmemory goes from behind the chunk to before it; y and dout are lost.
void forget(const Chunk& c, float* dmemory) {
  const DeltaJob& job = c.job;
  const DeltaPlaces& at = job.places;
  const Index step = job.step_value, registers = c.registers_value();
  float *y = c.at(at.y), *dout = c.at(at.dout);
  scale_rows(c, dout, dout, c.gamma);
  for (Index i = 0; i < c.count; ++i) c.slopes[i] = -c.gamma[i];
  scale_rows(c, y, y, c.slopes);
  multiply<Start::scaled>({dmemory, step, c.last}, c.padded, registers, ByColumns{c.k, job.step}, {y, step},
                          c.count);
  multiply<Start::more>({dmemory, step}, c.padded, registers, ByColumns{c.q, job.step}, {dout, step},
                        c.count);
}

void head_backward(Chunk& c, Index head) {
  const DeltaPlaces& at = c.job.places;
  begin_head(c, head);
  const Kept here = kept(c, c.index());
  float* dmemory = c.at(at.dmemory) + head * c.held_size();
  correct_backward(c, dmemory);
  scale_rows(c, c.at(at.written), here.missing, c.b);
  through_memories(c, here.memory, dmemory);
  through_pairs(c);
  const float last = c.gamma[c.count - 1];
  float of_last = 0;
  for (Index i = 0; i < c.padded; ++i)
    of_last += dot(here.memory + i * c.job.step_value, dmemory + i * c.job.step_value, c.padded_value);
  sum_slopes(c, last * of_last);
  give_numbers(c, here.missing);
  forget(c, dmemory);
}

}  // namespace

void delta_backward(const DeltaJob& job, const DeltaTask& task, float* workspace) {
  Chunk c(job, task, workspace);
  const DeltaPlaces& at = job.places;
  prepare_numbers(c);
  remember_all(c);
  clear(c.at(at.dmemory), job.r * c.held_size());
  for (Index first = (job.s - 1) / delta_chunk * delta_chunk; first >= 0; first -= delta_chunk) {
    begin_chunk(c, first);
    clear(c.at(at.dq), c.count * job.step);
    clear(c.at(at.dk), c.count * job.step);
    for (Index head = 0; head < job.r; ++head) head_backward(c, head);
    const F scale = all(job.scale);
    for (Index i = 0; i < c.count * job.step; i += lanes)
      store(c.at(at.dq) + i, scale * load(c.at(at.dq) + i));
    narrow_rows(job.dq, c.group_offset(job.dq), c.at(at.dq), {c.count, job.d, job.step});
    narrow_rows(job.dk, c.group_offset(job.dk), c.at(at.dk), {c.count, job.d, job.step});
  }
}

}  // namespace weft::fast::WEFT_ISA
