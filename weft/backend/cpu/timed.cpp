// Every kernel handed on, between two looks at the clock.
#include "weft/backend/cpu/timed.h"

#include <chrono>
#include <numeric>
#include <utility>

namespace weft {
namespace {

using T = const Tensor&;

class TimedKernels final : public Kernels {
 public:
  TimedKernels(std::unique_ptr<Kernels> kernels, WorkTimes& times)
      : kernels_(std::move(kernels)), times_(times) {}
  const char* name() const override { return kernels_->name(); }

  void matmul(T out, T a, T b, const MatmulArgs& how) override {
    time(Work::product, &Kernels::matmul, out, a, b, how);
  }
  void grouped_matmul(T out, T a, T b, Groups groups, const MatmulArgs& how) override {
    time(Work::product, &Kernels::grouped_matmul, out, a, b, groups, how);
  }
  std::int64_t packed_bytes(T w, Read read) override { return kernels_->packed_bytes(w, read); }
  void pack(T packed, T w, Read read) override { time(Work::product, &Kernels::pack, packed, w, read); }

  void fill(T out, double value) override { time(Work::elementwise, &Kernels::fill, out, value); }
  void copy(T out, T in) override { time(Work::elementwise, &Kernels::copy, out, in); }
  void add(T out, T a, T b) override { time(Work::elementwise, &Kernels::add, out, a, b); }
  void add_scaled(T out, T x, float alpha) override {
    time(Work::elementwise, &Kernels::add_scaled, out, x, alpha);
  }
  void scale(T x, float alpha) override { time(Work::elementwise, &Kernels::scale, x, alpha); }
  void multiply(T out, T a, T b) override { time(Work::elementwise, &Kernels::multiply, out, a, b); }
  void add_bias(T x, T bias) override { time(Work::elementwise, &Kernels::add_bias, x, bias); }
  void sum_rows(T dbias, T dy) override { time(Work::elementwise, &Kernels::sum_rows, dbias, dy); }
  void dropout(T y, T x, const DropoutArgs& how) override {
    time(Work::elementwise, &Kernels::dropout, y, x, how);
  }
  void bias_dropout_add(T out, T x, T bias, T residual, const DropoutArgs& how) override {
    time(Work::elementwise, &Kernels::bias_dropout_add, out, x, bias, residual, how);
  }
  void random_normal(T out, float mean, float deviation, const RandomBlock& block) override {
    time(Work::other, &Kernels::random_normal, out, mean, deviation, block);
  }
  void random_uniform(T out, float low, float high, const RandomBlock& block) override {
    time(Work::other, &Kernels::random_uniform, out, low, high, block);
  }

  void activation(T y, T x, T bias, Activation f) override {
    time(Work::elementwise, &Kernels::activation, y, x, bias, f);
  }
  void activation_backward(T dx, T dy, T x, T bias, Activation f) override {
    time(Work::elementwise, &Kernels::activation_backward, dx, dy, x, bias, f);
  }
  void gated(T y, T x, T bias, Activation f) override {
    time(Work::elementwise, &Kernels::gated, y, x, bias, f);
  }
  void gated_backward(T dx, T dy, T x, T bias, Activation f) override {
    time(Work::elementwise, &Kernels::gated_backward, dx, dy, x, bias, f);
  }

  void norm(T y, const NormStats& stats, T x, const NormWeights& weights, const NormArgs& how) override {
    time(Work::norm, &Kernels::norm, y, stats, x, weights, how);
  }
  void norm_backward(const NormGrads& grads, T dy, T residual, const NormSaved& saved,
                     const NormArgs& how) override {
    time(Work::norm, &Kernels::norm_backward, grads, dy, residual, saved, how);
  }
  void sum_norm(const SumNormOut& out, const SumNormIn& in, const NormWeights& weights,
                const NormArgs& how) override {
    time(Work::norm, &Kernels::sum_norm, out, in, weights, how);
  }
  void scale_rows(T y, T x, T factor) override { time(Work::norm, &Kernels::scale_rows, y, x, factor); }
  void dot_rows(T out, T a, T b) override { time(Work::norm, &Kernels::dot_rows, out, a, b); }

  void softmax(T y, T x, Mask mask, T padding) override {
    time(Work::attention, &Kernels::softmax, y, x, mask, padding);
  }
  void softmax_backward(T dx, T dy, T y) override {
    time(Work::attention, &Kernels::softmax_backward, dx, dy, y);
  }
  void log_sum_exp(T out, T x) override { time(Work::attention, &Kernels::log_sum_exp, out, x); }
  void attention(const AttentionOut& out, const Attended& in, const AttentionArgs& how) override {
    time(Work::attention, &Kernels::attention, out, in, how);
  }
  void attention_backward(const AttentionGrads& grads, T dout, const AttentionOut& out, const Attended& in,
                          const AttentionArgs& how) override {
    time(Work::attention, &Kernels::attention_backward, grads, dout, out, in, how);
  }
  void merge_attention(const AttentionOut& into, const AttentionOut& part) override {
    time(Work::attention, &Kernels::merge_attention, into, part);
  }
  void rope(T x, const RopeArgs& how) override { time(Work::attention, &Kernels::rope, x, how); }

  void gather(T out, T table, T ids, std::int64_t first) override {
    time(Work::embedding, &Kernels::gather, out, table, ids, first);
  }
  void scatter_add(T dtable, T dout, T ids, std::int64_t first) override {
    time(Work::embedding, &Kernels::scatter_add, dtable, dout, ids, first);
  }

  void loss_max(const LossParts& parts, T logits, VocabularyPart part) override {
    time(Work::loss, &Kernels::loss_max, parts, logits, part);
  }
  void loss_sums(const LossParts& parts, T logits, T targets, VocabularyPart part) override {
    time(Work::loss, &Kernels::loss_sums, parts, logits, targets, part);
  }
  void loss_finish(T loss, const LossParts& parts, const LossArgs& how, std::int64_t whole) override {
    time(Work::loss, &Kernels::loss_finish, loss, parts, how, whole);
  }
  void loss_backward(T logits, const LossParts& parts, const LossTargets& targets, VocabularyPart part,
                     const LossArgs& how) override {
    time(Work::loss, &Kernels::loss_backward, logits, parts, targets, part, how);
  }

  void sum(T out, T x) override { time(Work::other, &Kernels::sum, out, x); }
  void sum_exact(T digits, T x) override { time(Work::other, &Kernels::sum_exact, digits, x); }
  void sum_squares(T digits, T x) override { time(Work::other, &Kernels::sum_squares, digits, x); }
  void max_abs(T out, T x) override { time(Work::other, &Kernels::max_abs, out, x); }
  void find_nonfinite(T out, T x) override { time(Work::other, &Kernels::find_nonfinite, out, x); }
  void count_zeros(T out, T x) override { time(Work::other, &Kernels::count_zeros, out, x); }

  void top_k(T values, T indices, T x) override { time(Work::other, &Kernels::top_k, values, indices, x); }
  void sort_by_key(T order, T counts, T keys) override {
    time(Work::other, &Kernels::sort_by_key, order, counts, keys);
  }
  void gather_rows(T out, T x, T index) override { time(Work::other, &Kernels::gather_rows, out, x, index); }
  void scatter_add_rows(T out, T x, T index, T weight) override {
    time(Work::other, &Kernels::scatter_add_rows, out, x, index, weight);
  }

  void adam(const AdamState& state, T grad, const AdamArgs& how) override {
    time(Work::optimizer, &Kernels::adam, state, grad, how);
  }
  void sgd(const SgdState& state, T grad, const SgdArgs& how) override {
    time(Work::optimizer, &Kernels::sgd, state, grad, how);
  }
  void lion(const SgdState& state, T grad, const LionArgs& how) override {
    time(Work::optimizer, &Kernels::lion, state, grad, how);
  }
  void adam_direction(const AdamState& state, T grad, const AdamArgs& how) override {
    time(Work::optimizer, &Kernels::adam_direction, state, grad, how);
  }
  void descend(T master, T copy, T x, const DescentArgs& how) override {
    time(Work::optimizer, &Kernels::descend, master, copy, x, how);
  }
  void root(T out, T x, float epsilon) override { time(Work::optimizer, &Kernels::root, out, x, epsilon); }
  void take_signs(T bits, T x, float size) override {
    time(Work::optimizer, &Kernels::take_signs, bits, x, size);
  }
  void add_signs(T out, T bits, float size) override {
    time(Work::optimizer, &Kernels::add_signs, out, bits, size);
  }

 private:
  using Clock = std::chrono::steady_clock;

  template <class... Parameters, class... Arguments>
  void time(Work work, void (Kernels::*op)(Parameters...), Arguments&&... arguments) {
    const auto start = Clock::now();
    ((*kernels_).*op)(std::forward<Arguments>(arguments)...);
    const auto at = std::size_t(work);
    times_.seconds[at] += std::chrono::duration<double>(Clock::now() - start).count();
    ++times_.calls[at];
  }

  std::unique_ptr<Kernels> kernels_;
  WorkTimes& times_;
};

}  // namespace

double WorkTimes::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

std::unique_ptr<Kernels> timed(std::unique_ptr<Kernels> kernels, WorkTimes& times) {
  return std::make_unique<TimedKernels>(std::move(kernels), times);
}

}  // namespace weft
