// Work and memory are counted from shapes, so a device that holds no numbers counts what a real one does.

#include "tests/ops/fixture.h"
#include "tests/support/made.h"
#include "weft/ops/activation.h"
#include "weft/ops/adam.h"
#include "weft/ops/attention.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/embedding.h"
#include "weft/ops/loss.h"
#include "weft/ops/matmul.h"
#include "weft/ops/norm.h"
#include "weft/ops/permute.h"
#include "weft/ops/random.h"
#include "weft/ops/reduce.h"
#include "weft/ops/rope.h"
#include "weft/ops/softmax.h"
#include "weft/tensor/exact_sum.h"

namespace weft {
namespace {

/// A little of everything, on memory that nobody has written to.
void a_bit_of_everything(Device& device) {
  const Tensor x = ops::zeros(device, {4, 2, 8}, Dtype::bf16);
  const Tensor w = ops::zeros(device, {8, 8}, Dtype::bf16);
  const Tensor gain = ops::zeros(device, {8}, Dtype::bf16);
  const Tensor ids = ops::zeros(device, {8}, Dtype::i32);
  ops::random_normal_into(w, 0, 1, {.columns = 8});
  const Tensor y = ops::matmul(x, w, {.b = Read::transposed, .bias = gain});
  const SumNormOut sum = testing::sum_norm({y, gain, x, {}}, {gain, gain}, {});
  const NormWeights dw{ops::zeros(device, {8}), ops::zeros(device, {8})};
  (void)testing::norm_backward(y, x, {sum.sum, sum.stats, gain}, dw, {});
  (void)ops::gated_backward(ops::gated(x, {}, {Activation::silu}), x, {}, {Activation::silu});
  const Attended in{x.split(2, {2, 1, 4}), x.split(2, {2, 4}), x.split(2, {2, 4})};
  const AttentionOut out = ops::attention(in, {.mask = Mask::causal});
  (void)testing::attention_backward(out.o, out, in, {.mask = Mask::causal});
  ops::rope_in_place(x, {.angles = ops::zeros(device, {4, 4, 2})});
  ops::scatter_add_into(ops::zeros(device, {6, 8}), ops::gather(w, ids), ids);
  const Tensor logits = ops::zeros(device, {8, 12});
  const VocabularyPart all{0, 12, 12};
  const ops::LossSums sums = ops::loss_sums(ops::loss_max(logits, all), logits, ids, all);
  const Tensor loss = ops::loss_finish(sums.parts);
  ops::loss_backward_in_place(logits, sums.parts, {ids, loss}, all);
  ops::scatter_add_rows_into(logits, ops::gather_rows(logits, ids), ids, loss);
  (void)ops::top_k(ops::softmax(logits), 2);
  (void)ops::sum(ops::dot_rows(logits, ops::scale_rows(logits, loss)));
  ops::sum_squares_into(ops::zeros(device, {exact_digits}, Dtype::f64), logits);
  const Tensor flat = ops::zeros(device, {96});
  ops::adam_into({flat, flat, flat, {}}, logits.view({96}), {.rate = 1});
}

TEST(Count, of_a_device_without_numbers_is_that_of_one_with) {
  const auto real = open_device("cpu:reference", {.threads = 1});
  const auto counting = open_device("meta", {.threads = 1});
  a_bit_of_everything(*real);
  a_bit_of_everything(*counting);
  EXPECT_EQ(counting->work(), real->work());
  EXPECT_GT(real->work().flops(), 0);
  for (const Work kind : {Work::product, Work::attention, Work::norm, Work::elementwise, Work::loss,
                          Work::embedding, Work::optimizer, Work::other})
    EXPECT_GT(real->work().by[std::size_t(kind)].bytes, 0) << name(kind);
}

TEST(Count, of_bytes_is_that_of_the_tensors_an_op_must_cross) {
  const auto device = open_device("meta", {.threads = 1});
  const Tensor x = empty(*device, {3, 5}, Dtype::bf16);
  const Tensor sum = empty(*device, {3, 5});
  ops::add_scaled_into(sum, x);
  EXPECT_EQ(device->work().by[std::size_t(Work::elementwise)], (Tally{1, 2 * 15, 15 * (4 + 4 + 2)}));
}

}  // namespace
}  // namespace weft
