// Small products of a batch go to one thread each, large ones to all threads one after another.
#include "weft/backend/cpu/product/products.h"

#include <omp.h>

#include <algorithm>

#include "weft/base/error.h"

namespace weft::product {
namespace {

constexpr double worth_all_threads = 4e6;  // operations of one product of a batch

/// Whatever the number of threads: bits are those of the engine that computes.
bool one_thread_each(const Tensor& out, std::int64_t k) {
  if (out.rank() < 3 || out.dim(0) < 2) return false;
  return 2.0 * double(out.dim(1)) * double(out.dim(2)) * double(k) < worth_all_threads;
}

fast::Type type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return fast::Type::f32;
    case Dtype::bf16:
      return fast::Type::bf16;
    case Dtype::f16:
      return fast::Type::f16;
    default:
      fail(Kind::internal, "matmul: ", name(dtype), " is not a type that products compute in");
  }
}

/// Processors with AMX multiply pairs outside of its tiles at 0.6 of the rate of f32.
bool pairs_pay(fast::InstructionSet set) { return set != fast::InstructionSet::avx512_amx; }

Matrix matrix(const Tensor& tensor, std::int64_t i) {
  const Dtype dtype = tensor.dtype();
  const auto* first = static_cast<const char*>(tensor.address());
  const std::int64_t at = tensor.rank() == 3 ? i * tensor.stride(0) * size_of(dtype) : 0;
  // A single row has no next one, so its step may be any: 1 would mean rows in sixes to the walk.
  const std::int64_t row = tensor.dim(-2) == 1 ? tensor.dim(-1) : tensor.stride(-2);
  return {first ? first + at : nullptr, type_of(dtype), row};
}

float* workspace(const StorageRef& storage) { return reinterpret_cast<float*>(storage->data()); }

struct Group {
  std::int64_t number, from, count;
};

/// One group: some rows of a, and of out or b.
Problem problem_of(const Group& group, const Tensor& out, const Tensor& a, const Tensor& b,
                   const MatmulArgs& how) {
  const auto [g, from, count] = group;
  if (how.a == Read::transposed)
    return problem(out.at(0, g), a.slice(0, from, count), b.slice(0, from, count), how);
  MatmulArgs one = how;
  if (how.bias) one.bias = how.bias.at(0, g);
  return problem(out.slice(0, from, count), a.slice(0, from, count), b.at(0, g), one);
}

void fill_zeros(const Tensor& out, std::int64_t g) {
  const Tensor one = out.at(0, g);
  auto* first = static_cast<char*>(one.address());
  const std::int64_t size = size_of(out.dtype());
  for (std::int64_t i = 0; i < one.dim(0); ++i)
    std::fill_n(first + i * one.stride(0) * size, one.dim(1) * size, char(0));
}

}  // namespace

Problem problem(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how, std::int64_t i) {
  Problem p;
  p.a_turned = how.a == Read::transposed;
  p.b_turned = how.b == Read::transposed;
  p.m = out.dim(-2);
  p.n = out.dim(-1);
  p.k = a.dim(p.a_turned ? -2 : -1);
  p.a = matrix(a, i);
  p.b = matrix(b, i);
  const Matrix to = matrix(out, i);
  p.out = {const_cast<void*>(to.from), to.type, false};
  p.out_row = to.row;
  p.accumulate = how.accumulate;
  p.has_bias = bool(how.bias);
  if (how.bias) p.bias = {how.bias.address(), type_of(how.bias.dtype())};
  p.slabs = how.slabs;
  return p;
}

Products::Products(const ProductsOptions& options)
    : exact_(options.exact),
      trials_(options.trials ? options.trials : std::make_shared<ProductTrials>()),
      own_(options.set),
      groups_(options.exact || !pairs_pay(options.set) ? nullptr : PairEngine::open(options.set)) {}

std::string Products::use(fast::Type type, std::shared_ptr<Engine> engine, int threads) {
  if (exact_) {
    const std::string found = trials_->cutting_changes(*engine, type, threads);
    if (!found.empty())
      return text("exact mode: ", engine->name(), "'s product ", found,
                  " on this processor; our own product of fixed order takes its place");
  }
  by_type_[std::size_t(type)] = std::move(engine);
  return "";
}

void Products::use_form_by_form(fast::Type type, std::shared_ptr<Engine> engine, int threads) {
  by_type_[std::size_t(type)] = std::move(engine);
  threads_ = threads;
}

void Products::use_for_groups(std::shared_ptr<Engine> engine) {
  if (engine) groups_ = std::move(engine);
}

void Products::check_own(int threads) {
  for (const fast::Type type : {fast::Type::f32, fast::Type::bf16, fast::Type::f16}) {
    const std::string found = trials_->cutting_changes(own_, type, threads);
    if (!found.empty())
      fail(Kind::device, "exact mode: our own product ", found,
           " on this processor; leave out {model.exact}");
  }
}

Engine& Products::engine(const Problem& problem) {
  Engine* chosen = by_type_[std::size_t(problem.a.type)].get();
  if (!chosen) return own_;
  if (threads_ > 0) return chosen->takes(problem) && holds(*chosen, problem) ? *chosen : own_;
  return chosen->takes(problem) && (exact_ || chosen->pays(problem)) ? *chosen : own_;
}

Engine& Products::group_engine(const Problem& problem) {
  return groups_ && groups_->takes(problem) ? *groups_ : own_;
}

bool Products::holds(Engine& engine, const Problem& problem) {
  const CutForm form = cut_form(problem);
  const auto found = std::ranges::find(tried_, form, &Tried::form);
  if (found != tried_.end()) return found->holds;
  tried_.push_back({form, trials_->holds(engine, form, threads_)});
  return tried_.back().holds;
}

std::int64_t Products::matmul_bytes(const Tensor& out, const Tensor& a, const Tensor& b,
                                    const MatmulArgs& how, int threads) {
  const Problem p = problem(out, a, b, how);
  if (one_thread_each(out, p.k)) return threads * own_.bytes(p, 1);
  return engine(p).bytes(p, threads);
}

void Products::matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  Device& device = out.device();
  const int threads = device.threads();
  const std::int64_t bytes = matmul_bytes(out, a, b, how, threads);
  const StorageRef memory = device.allocate(bytes, Use::workspace);
  const std::int64_t batch = out.rank() == 3 ? out.dim(0) : 1;
  const Problem first = problem(out, a, b, how);
  if (one_thread_each(out, first.k)) {
    const std::int64_t own = bytes / threads / std::int64_t(sizeof(float));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (std::int64_t i = 0; i < batch; ++i)
      own_.run(problem(out, a, b, how, i), 1, workspace(memory) + omp_get_thread_num() * own);
    return;
  }
  Engine& chosen = engine(first);
  for (std::int64_t i = 0; i < batch; ++i) chosen.run(problem(out, a, b, how, i), threads, workspace(memory));
}

std::int64_t Products::grouped_bytes(const Tensor& out, const Tensor& a, const Tensor& b,
                                     const MatmulArgs& how, int threads) {
  Problem p = problem(out, a, b, how);
  (p.a_turned ? p.k : p.m) = std::max(a.dim(0), std::int64_t(1));
  const std::int64_t own = own_.grouped_bytes(p, threads);
  return groups_ && p.a.type == fast::Type::bf16 ? std::max(own, groups_->grouped_bytes(p, threads)) : own;
}

void Products::grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                              const MatmulArgs& how) {
  Device& device = out.device();
  const int threads = device.threads();
  const StorageRef memory = device.allocate(grouped_bytes(out, a, b, how, threads), Use::workspace);
  const auto offsets = groups.offsets;
  for (std::int64_t g = 0; g + 1 < std::ssize(offsets); ++g) {
    const std::int64_t from = offsets[std::size_t(g)];
    const Problem p = problem_of({g, from, offsets[std::size_t(g) + 1] - from}, out, a, b, how);
    if (p.m > 0 && p.n > 0 && p.k > 0)
      group_engine(p).run(p, threads, workspace(memory));
    else if (p.k == 0 && !how.accumulate)
      fill_zeros(out, g);
  }
}

}  // namespace weft::product
