// What is zeroed between matrices, by how few calls, and what a sum is to who adds to it first.
#include "weft/optim/fresh_sums.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "weft/backend/open.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/weights.h"
#include "weft/tensor/host.h"

using namespace weft;

namespace {

/// Parameters one behind the other, each from a multiple of 16 elements on, and sums that are all sevens.
class InMemory {
 public:
  explicit InMemory(std::int64_t from = 0) : device_(open_device("cpu", {.threads = 1})), from_(from) {}
  void add(const Shape& shape) {
    parameters_.push_back(whole_parameter("p", shape, {}));
    slots_.push_back({&parameters_.back(), from_ + elements_});
    elements_ += (shape.elements() + 15) / 16 * 16;
  }
  /// Calls that begin all sums anew.
  std::int64_t begin() {
    memory_ = empty(*device_, {elements_});
    ops::fill(memory_, 7);
    for (const WeightSlot& slot : slots_) slot.parameter->grad.bind(Weights::part(memory_, slot, from_));
    const FreshSums fresh(slots_, from_, elements_);
    const auto& calls = device_->work().by[std::size_t(Work::elementwise)].calls;
    const auto before = calls;
    fresh.begin(memory_);
    return std::int64_t(calls - before);
  }
  /// Elements that are neither a matrix's and as they were, nor another's and zeros.
  int wrong() const {
    std::vector<double> expected(std::size_t(elements_), 0);
    for (const WeightSlot& slot : slots_)
      if (slot.parameter->shape.rank() > 1)
        std::fill_n(expected.begin() + (slot.at - from_), slot.parameter->shape.elements(), 7);
    int out = 0;
    for (std::int64_t i = 0; i < elements_; ++i) out += memory_.data<float>()[i] != expected[std::size_t(i)];
    return out;
  }
  const GradSink& sum(int which) const { return parameters_[std::size_t(which)].grad; }

 private:
  std::unique_ptr<Device> device_;
  std::int64_t from_, elements_ = 0;
  std::deque<Parameter> parameters_;
  std::vector<WeightSlot> slots_;
  Tensor memory_;
};

/// A layer as GPT-2 has it.
void add_layer(InMemory& memory) {
  const std::int64_t h = 16;
  for (const std::int64_t out : {3 * h, h, 4 * h}) {
    if (out != h) memory.add({h}), memory.add({h});
    memory.add({out, h});
    memory.add({out});
  }
  memory.add({h, 4 * h});
  memory.add({h});
}

}  // namespace

TEST(FreshSums, zero_what_no_product_writes_and_nothing_else) {
  InMemory memory(32);
  for (const Shape& shape : {Shape{5}, {3, 7}, {2, 16}, {16}, {9, 1}, {1}, {4, 4}}) memory.add(shape);
  memory.begin();
  EXPECT_EQ(memory.wrong(), 0);
}

TEST(FreshSums, ask_for_as_many_calls_however_many_layers_there_are) {
  for (const int layers : {1, 2, 9}) {
    InMemory memory;
    memory.add({97, 16});
    for (int i = 0; i < layers; ++i) add_layer(memory);
    memory.add({16});
    EXPECT_LE(memory.begin(), 6) << layers << " layers";
    EXPECT_EQ(memory.wrong(), 0) << layers << " layers";
  }
}

TEST(FreshSums, of_matrices_alone_ask_for_nothing) {
  InMemory memory;
  for (int i = 0; i < 3; ++i) memory.add({4, 8});
  EXPECT_EQ(memory.begin(), 0);
  EXPECT_EQ(memory.wrong(), 0);
}

TEST(FreshSums, are_written_by_the_first_product_and_added_to_by_others) {
  InMemory memory;
  memory.add({2, 8});
  memory.begin();
  EXPECT_TRUE(memory.sum(0).holds_nothing());
  EXPECT_FALSE(memory.sum(0).place().on_top);
  EXPECT_TRUE(memory.sum(0).place().on_top);
  EXPECT_EQ(memory.wrong(), 0) << "nothing was zeroed for it";
}

TEST(FreshSums, are_zeros_to_who_adds_or_reads_and_where_a_product_writes_a_part) {
  InMemory memory;
  memory.add({2, 8});
  memory.begin();
  EXPECT_EQ(to_host<float>(memory.sum(0).sum()), std::vector<float>(16));
  EXPECT_TRUE(memory.sum(0).place().on_top);
  memory.begin();
  const GradPlace part = memory.sum(0).place(1, 1);
  EXPECT_TRUE(part.on_top);
  EXPECT_EQ(part.sum.shape(), (Shape{1, 8}));
  EXPECT_EQ(to_host<float>(memory.sum(0).sum()), std::vector<float>(16));
}
