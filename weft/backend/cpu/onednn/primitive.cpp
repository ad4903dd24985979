// Primitives are made with their workspace outside, so that they may be run by several threads.
#include "weft/backend/cpu/onednn/primitive.h"

#include <omp.h>

#include "weft/base/error.h"

namespace weft::onednn {

using dnnl::memory;
using fast::Type;
using product::Problem;

namespace {

std::int64_t line(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

bool has_avx512() {
  const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto least = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (has & least) == least;
}

memory::data_type type_of(Type type) {
  switch (type) {
    case Type::bf16:
      return memory::data_type::bf16;
    case Type::f16:
      return memory::data_type::f16;
    default:
      return memory::data_type::f32;
  }
}

memory::desc rows_of(std::int64_t rows, std::int64_t columns, Type type, std::int64_t row, bool turned) {
  return {{rows, columns}, type_of(type), turned ? memory::dims{1, row} : memory::dims{row, 1}};
}

Key key_of(const Problem& p, int threads) {
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .a_row = p.a.row,
          .b_row = p.b.row,
          .out_row = p.out_row,
          .type = p.a.type,
          .out = p.out.type,
          .bias = p.bias.type,
          .a_turned = p.a_turned,
          .b_turned = p.b_turned,
          .adds = p.accumulate,
          .has_bias = p.has_bias,
          .threads = threads};
}

std::size_t Mix::operator()(const Key& key) const {
  std::uint64_t h = 0;
  const auto add = [&h](std::uint64_t x) { h = (h ^ x) * 0x9E3779B97F4A7C15U + (h >> 29); };
  for (const std::int64_t x : {key.m, key.n, key.k, key.a_row, key.b_row, key.out_row}) add(std::uint64_t(x));
  add(std::uint64_t(key.type) | std::uint64_t(key.out) << 2 | std::uint64_t(key.bias) << 4 |
      std::uint64_t(key.a_turned) << 6 | std::uint64_t(key.b_turned) << 7 | std::uint64_t(key.adds) << 8 |
      std::uint64_t(key.has_bias) << 9 | std::uint64_t(key.threads) << 10);
  return std::size_t(h);
}

Team::Team(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
Team::~Team() { omp_set_num_threads(before_); }

Made make(const Key& key, const dnnl::engine& engine) {
  const Team team(key.threads);
  const memory::desc a = rows_of(key.m, key.k, key.type, key.a_row, key.a_turned);
  const memory::desc b = rows_of(key.k, key.n, key.type, key.b_row, key.b_turned);
  const memory::desc out = rows_of(key.m, key.n, key.out, key.out_row, false);
  const memory::desc bias({1, key.n}, type_of(key.bias), memory::format_tag::ab);
  dnnl::primitive_attr how;
  how.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (key.adds) {
    dnnl::post_ops then;
    then.append_sum(1.0F);
    how.set_post_ops(then);
  }
  const dnnl::matmul::desc what =
      key.has_bias ? dnnl::matmul::desc(a, b, bias, out) : dnnl::matmul::desc(a, b, out);
  const dnnl::matmul::primitive_desc chosen(what, how, engine);
  Made made;
  made.primitive = dnnl::matmul(chosen);
  made.a = memory(a, engine, nullptr);
  made.b = memory(b, engine, nullptr);
  made.out = memory(out, engine, nullptr);
  made.bias = memory(bias, engine, nullptr);
  made.scratch = memory(chosen.scratchpad_desc(), engine, nullptr);
  made.scratch_bytes = line(std::int64_t(chosen.scratchpad_desc().get_size()));
  return made;
}

dnnl_status_t execute(Made& m, const Problem& p, const dnnl::stream& stream, float* workspace) {
  m.a.set_data_handle(const_cast<void*>(p.a.from));
  m.b.set_data_handle(const_cast<void*>(p.b.from));
  m.out.set_data_handle(p.out.to);
  m.scratch.set_data_handle(workspace);
  if (p.has_bias) m.bias.set_data_handle(const_cast<void*>(p.bias.from));
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, m.a.get()},
                                       {DNNL_ARG_WEIGHTS, m.b.get()},
                                       {DNNL_ARG_DST, m.out.get()},
                                       {DNNL_ARG_SCRATCHPAD, m.scratch.get()},
                                       {DNNL_ARG_BIAS, m.bias.get()}};
  return dnnl_primitive_execute(m.primitive.get(), stream.get(), p.has_bias ? 5 : 4, arguments);
}

void check(const Problem& p, dnnl_status_t status) {
  if (status != dnnl_success)
    fail(Kind::device, "oneDNN: product [", p.m, ", ", p.k, "] by [", p.k, ", ", p.n, "] failed with status ",
         int(status));
}

}  // namespace weft::onednn
