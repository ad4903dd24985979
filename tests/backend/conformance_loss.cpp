// Cross entropy in pieces: a whole vocabulary, parts of one, padding.
#include "tests/backend/conformance.h"

namespace weft::conformance {
namespace {

struct Case {
  std::int64_t t, columns;
  VocabularyPart part;
};

std::vector<Case> cases() {
  return {{1, 1, {0, 1, 2}},       {9, 50, {0, 50, 50}},        {9, 64, {0, 50, 50}},
          {9, 64, {128, 60, 188}}, {33, 1031, {0, 1031, 1031}}, {3, 16, {32, 0, 30 + 2}}};
}

void loss(Desk& desk, const Case& c, Dtype dtype) {
  const Tensor logits = desk.normal({c.t, c.columns}, dtype, 3);
  desk.lay(Lay::contiguous);
  const Tensor ids = desk.integers({c.t}, Dtype::i32, 0, c.part.whole);
  LossParts parts{desk.blank({c.t}), desk.blank({c.t}), desk.blank({c.t})};
  desk.kernels().loss_max(parts, logits, c.part);
  desk.result("max", parts.max, exactly);
  parts.max = desk.holding({c.t}, Dtype::f32, std::vector<double>(std::size_t(c.t), 6.5));
  desk.kernels().loss_sums(parts, logits, ids, c.part);
  desk.result("sum", parts.sum, close(Dtype::f32, 64));
  desk.result("target", parts.target, close(Dtype::f32, 4));
  parts.sum = desk.holding({c.t}, Dtype::f32, std::vector<double>(std::size_t(c.t), 3.25));
  const Tensor out = desk.blank({c.t});
  desk.kernels().loss_finish(out, parts);
  desk.result("loss", out, close(Dtype::f32, 64, 8));
  desk.kernels().loss_backward(logits, parts, {ids, desk.normal({c.t})}, c.part);
  desk.result("gradient", logits, close(dtype, 16, 2));
}

TEST_P(Conformance, gives_the_loss_and_its_gradient) {
  for (const Case& c : cases())
    for (const Dtype dtype : floats)
      for (const Lay lay : {Lay::contiguous, Lay::gaps}) {
        SCOPED_TRACE(text(c.t, " tokens, ", c.part.count, " words from ", c.part.first, " in ", c.columns,
                          " columns of ", name(dtype)));
        same([&](Desk& desk) { loss(desk, c, dtype); }, lay);
      }
}

/// Of a whole vocabulary at once: rows that a block can hold, with several eights a thread, and others.
TEST_P(Conformance, gives_the_loss_and_its_gradient_at_once) {
  for (const Case& c : {Case{9, 50, {0, 50, 50}},
                        {9, 64, {0, 50, 50}},
                        {5, 9008, {0, 9001, 9001}},
                        {1, 60000, {0, 60000, 60000}}})
    for (const Dtype dtype : floats) {
      SCOPED_TRACE(
          text(c.t, " tokens, ", c.part.count, " words in ", c.columns, " columns of ", name(dtype)));
      for (const Lay lay : {Lay::contiguous, Lay::gaps})
        same(
            [&](Desk& desk) {
              const Tensor logits = desk.normal({c.t, c.columns}, dtype, 3);
              desk.lay(Lay::contiguous);
              const LossTargets targets{desk.integers({c.t}, Dtype::i32, 0, c.part.whole),
                                        desk.normal({c.t})};
              const Tensor loss = desk.blank({c.t});
              desk.kernels().loss_and_gradient(loss, logits, targets, c.part);
              desk.result("loss", loss, close(Dtype::f32, 64, 8));
              desk.result("gradient", logits, close(dtype, 16, 2));
            },
            lay);
    }
}

// Words before the part, its first and last, those where its padding stands, and behind it.
TEST_P(Conformance, gives_the_loss_of_a_part_its_own_targets_alone) {
  const VocabularyPart part{64, 50, 188};
  const std::vector<double> ids{0, 14, 63, 64, 113, 114, 127, 128, 177, 187};
  for (const Dtype dtype : floats)
    same([&](Desk& desk) {
      const Tensor logits = desk.normal({10, 64}, dtype, 3), targets = desk.holding({10}, Dtype::i32, ids);
      const LossParts parts{desk.blank({10}), desk.blank({10}), desk.blank({10})};
      desk.kernels().loss_max(parts, logits, part);
      desk.kernels().loss_sums(parts, logits, targets, part);
      desk.result("target", parts.target, close(Dtype::f32, 4));
      desk.kernels().loss_backward(logits, parts, {targets, desk.normal({10})}, part);
      desk.result("gradient", logits, close(dtype, 16, 2));
    });
}

}  // namespace
}  // namespace weft::conformance
