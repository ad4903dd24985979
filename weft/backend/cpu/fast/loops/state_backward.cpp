// A state space backward, head by head: the memories before all chunks, then chunks from the last to the
// first, with dS the slope of the memory behind the chunk. A memory is kept turned. q is times the scale,
// u = t v.
//
//   du_i  = rest_i dS^T k_i + sum_(j >= i) p_ji do_j,   dv_i = t_i du_i + skip do_i
//   xp_ij = fade_ij do_i u_j  (j <= i)
//   dq_i  = gamma_i S0 do_i + sum_j xp_ij k_j
//   dk_i  = rest_i dS u_i + sum_j xp_ji q_j
//   dS0   = gamma_last dS + sum_i gamma_i q_i do_i^T
//
// What pairs of steps give q and k takes one product for all heads: xp are added up over them.
#include "weft/backend/cpu/fast/delta_slopes.h"
#include "weft/backend/cpu/fast/loops/delta.h"

namespace weft::fast::WEFT_ISA {
namespace {

// A product writes whole tiles, and what lies behind a chunk's rows is the next one's.
static_assert(delta_chunk % block_rows == 0);

Index square_of(const Chunk& c) { return c.index() * delta_chunk * delta_square; }
float* qk(const Chunk& c) { return c.at(c.job.places.qk) + square_of(c); }
float* pairs(const Chunk& c) { return c.at(c.job.places.pairs) + square_of(c); }
float* own_rows(const Chunk& c, Index place) { return c.at(place) + c.first * c.job.step; }
Index turned_size(const Chunk& c) { return c.padded_value * c.job.step; }
float* memory(const Chunk& c, Index chunk) { return c.at(c.job.places.memory) + chunk * turned_size(c); }

/// body() at every chunk, in either order.
template <class Body>
void each_chunk(Chunk& c, Way way, const Body& body) {
  const Index chunks = round_up(c.job.s, delta_chunk) / delta_chunk;
  for (Index i = 0; i < chunks; ++i) {
    c.go_to((way == Way::down ? i : chunks - 1 - i) * delta_chunk);
    body();
  }
}

constexpr Index tile_rows = tile_sums / tile_columns;
/// Rows of d that are kept, over the tiles of a product of a chunk's.
void fetch_kept(Fetch& fetch, const Chunk& c, const float* at, Index rows) {
  const Index bytes = c.job.step * Index(sizeof(float));
  fetch.from[fetch.count++] = {reinterpret_cast<const char*>(at), bytes, (bytes + 63) / 64, rows,
                               (rows * tile_rows + delta_chunk - 1) / delta_chunk};
}
/// Head by head every chunk's values lie far from those of the one before: a product of one asks for what the
/// next reads, if there is a next.
void fetch_values(Fetch& fetch, const Chunk& c, const AttentionRows& rows, Way way) {
  const Index step = way == Way::down ? delta_chunk : -delta_chunk;
  if (c.first + step < 0) return;
  fetch_over(fetch, rows, c.job.d_value,
             {c.head_offset(rows) + step * rows.s, least(delta_chunk, c.job.s - (c.first + step)),
              delta_chunk / tile_rows});
}

/// Memories before all chunks, in ascending order: a product may write beyond the one it makes, which is made
/// next.
[[gnu::noinline]] void remember_all(Chunk& c) {
  const DeltaJob& job = c.job;
  const DeltaPlaces& at = job.places;
  clear(memory(c, 0), turned_size(c));
  each_chunk(c, Way::down, [&] {
    if (c.first + delta_chunk >= job.s) return;
    sum_logs(c);
    load_values(c);
    weigh_rows(c);
    scale_rows(c, c.at(at.written), c.at(at.written), c.slopes);
    const float* from = memory(c, c.index());
    float* to = memory(c, c.index() + 1);
    for (Index i = 0; i < turned_size(c); i += lanes) store(to + i, load(from + i));
    Fetch fetch;
    fetch_values(fetch, c, job.v, Way::down);
    if (c.first + 2 * delta_chunk < job.s)
      fetch_kept(fetch, c, memory(c, c.index() + 2), c.padded_value);  // which is written next
    multiply<Start::scaled>({to, job.step, c.last}, c.padded_value, c.registers(),
                            ByColumns{c.at(at.written), job.step_value}, {c.k, job.step}, c.count, &fetch);
  });
}

[[gnu::noinline]] void weigh_pairs(const Chunk& c) {
  const DeltaPlaces& at = c.job.places;
  const float* products = qk(c);
  each_fade(c, [&](Index place, Index, F fade) {
    store(c.at(at.fade) + place, fade);
    store(c.at(at.p) + place, fade * load(products + place));
  });
}

/// dv, and the slopes of the skip and of t where it is a factor: drate and ddecay, for now.
[[gnu::noinline]] void give_values(const Chunk& c) {
  const DeltaJob& job = c.job;
  const DeltaPlaces& at = job.places;
  const F skip = all(c.at(at.skip)[c.head]);
  for (Index i = 0; i < c.count; ++i) {
    const F time = all(c.b[i]);
    F of_time = all(0.0F), of_skip = all(0.0F);
    for (Index x = i * job.step_value; x < i * job.step_value + c.padded_value; x += lanes) {
      const F du = load(c.at(at.y) + x), v = load(c.at(at.written) + x), dout = load(c.at(at.dout) + x);
      store(c.at(at.o) + x, added_product(time, du, skip * dout));
      of_time = fused(du, v, of_time);
      of_skip = fused(dout, v, of_skip);
    }
    c.numbers(at.ddecay)[i] = sum(of_time);
    c.numbers(at.drate)[i] = sum(of_skip);
  }
  narrow_rows(job.dv, c.head_offset(job.dv), c.at(at.o), {c.count, job.d_value, job.step_value});
}

/// xp, to those of the other heads, and what pairs of steps add to the slopes of all logarithms between them,
/// in fade.
[[gnu::noinline]] void differentiate_pairs(const Chunk& c) {
  const DeltaPlaces& at = c.job.places;
  transpose(c.at(at.written_turned), delta_square, c.at(at.written), c.job.step_value,
            {c.count, c.padded_value});
  multiply_lower(c, c.at(at.p), {c.at(at.dout), c.job.step_value}, c.at(at.written_turned), c.job.d_value);
  const float* products = qk(c);
  float* sums = pairs(c);
  for (Index i = 0; i < c.count; ++i)
    for (Index j = 0; j <= i; j += lanes) {
      const Index here = i * delta_square + j;
      const F weight = load(c.at(at.fade) + here) * load(c.b + j);
      const F xp = choose(up_to(j, i), weight * load(c.at(at.p) + here), all(0.0F));
      store(sums + here, load(sums + here) + xp);
      store(c.at(at.fade) + here, choose(up_to(j, i - 1), xp * load(products + here), all(0.0F)));
    }
}

/// What comes through the memories on either side, and slopes of gamma's logarithms. v and dout are lost.
[[gnu::noinline]] void through_memories(const Chunk& c) {
  const DeltaJob& job = c.job;
  const DeltaPlaces& at = job.places;
  const Index step = job.step;
  scale_rows(c, c.at(at.dout), c.at(at.dout), c.gamma);
  Fetch fetch;
  fetch_values(fetch, c, job.v, Way::up);
  fetch_values(fetch, c, job.dout, Way::up);
  multiply<Start::zero>({c.at(at.by_q), step}, c.count, c.registers(), ByRows{c.at(at.dout), job.step_value},
                        {memory(c, c.index()), step}, job.d_value, &fetch);
  for (Index i = 0; i < c.count; ++i) {
    float* dq = own_rows(c, at.dq) + i * step;
    const float *q = c.q + i * step, *by_q = c.at(at.by_q) + i * step;
    F before = all(0.0F);
    for (Index x = 0; x < c.padded; x += lanes) {
      const F slope = load(by_q + x);
      before = fused(load(q + x), slope, before);
      store(dq + x, load(dq + x) + slope);
    }
    c.a_terms[i] = sum(before);
  }
  weigh_rows(c);
  scale_rows(c, c.at(at.written), c.at(at.written), c.slopes);
  multiply<Start::more>({own_rows(c, at.dk), step}, c.count, c.registers(),
                        ByRows{c.at(at.written), job.step_value}, {c.at(at.dmemory_turned), step},
                        job.d_value);
}

/// Slopes of the numbers of a step.
[[gnu::noinline]] void give_numbers(const Chunk& c) {
  const DeltaPlaces& at = c.job.places;
  float of_last = 0;
  for (Index i = 0; i < c.job.d_value; ++i)
    of_last += dot(memory(c, c.index()) + i * c.job.step, c.at(at.dmemory_turned) + i * c.job.step, c.padded);
  sum_slopes(c, c.gamma[c.count - 1] * of_last);
  const F slow = all(c.at(at.slowness)[c.head]);
  for (Index i = 0; i < round_up(c.count, lanes); i += lanes) {
    const F dlog = load(c.a_terms + i), dtime = load(c.numbers(at.ddecay) + i);
    store(c.numbers(at.ddecay) + i, (dtime - dlog * slow) * sigmoid(load(c.numbers(at.raw) + i)));
    store(c.numbers(at.dspeed) + i, dlog * load(c.numbers(at.log_keep) + i));
  }
}

[[gnu::noinline]] void chunk_backward(const Chunk& c) {
  const DeltaJob& job = c.job;
  const DeltaPlaces& at = job.places;
  const Index step = job.step_value;
  float* dmemory = c.at(at.dmemory);
  load_values(c);
  widen_rows(c.at(at.dout), job.dout, c.head_offset(job.dout), {c.count, job.d_value, step});
  sum_logs(c);
  weigh_pairs(c);
  transpose(c.at(at.dmemory_turned), job.step, dmemory, step, {c.padded, c.padded_value});
  Fetch fetch;
  fetch_kept(fetch, c, own_rows(c, at.dq), c.count);
  fetch_kept(fetch, c, own_rows(c, at.dk), c.count);
  fetch_kept(fetch, c, memory(c, c.index()), c.padded_value);
  from_memory(c, dmemory, &fetch);
  for (Index i = 0; i < c.count; ++i)
    c.c_terms[i] =
        c.rest[i] * c.b[i] * dot(c.at(at.y) + i * step, c.at(at.written) + i * step, c.padded_value);
  from_answers(c);
  give_values(c);
  differentiate_pairs(c);
  through_memories(c);
  give_numbers(c);
  multiply<Start::scaled>({dmemory, step, c.last}, c.padded, c.registers_value(), ByColumns{c.q, job.step},
                          {c.at(at.dout), step}, c.count);
}

/// What pairs of steps give, all heads' at once.
[[gnu::noinline]] void through_pairs(const Chunk& c) {
  const DeltaPlaces& at = c.job.places;
  add_earlier(c, own_rows(c, at.dq), pairs(c), c.k);
  add_later(c, own_rows(c, at.dk), pairs(c), c.q);
  float* dq = own_rows(c, at.dq);
  const F scale = all(c.job.scale);
  for (Index i = 0; i < c.count * c.job.step; i += lanes) store(dq + i, scale * load(dq + i));
}

}  // namespace

void state_backward(const DeltaJob& job, const DeltaTask& task, float* workspace) {
  Chunk c(job, task, workspace);
  const DeltaPlaces& at = job.places;
  prepare_numbers(c);
  clear(c.at(at.dq), 2 * job.rows * job.step);
  each_chunk(c, Way::down, [&] {
    load_group(c, qk(c));
    clear(pairs(c), delta_chunk * delta_square);
  });
  for (c.head = 0; c.head < task.heads; ++c.head) {
    remember_all(c);
    clear(c.at(at.dmemory), c.held_size());
    each_chunk(c, Way::up, [&] { chunk_backward(c); });
  }
  each_chunk(c, Way::down, [&] { through_pairs(c); });
}

void state_give(const DeltaJob& job, const DeltaTask& task, const float* dq) {
  const auto give = [&](const AttentionRows& rows, const float* from) {
    narrow_rows(rows, task.sequence * rows.b + task.group * rows.g, from, {job.s, job.d, job.step});
  };
  give(job.dq, dq);
  give(job.dk, dq + job.rows * job.step);
}

}  // namespace weft::fast::WEFT_ISA
