// Any device's kernels against the oracle: the same computation on both, every result compared, over a table
// of shapes, types and strides; then with other numbers of threads, where every bit must be the same.
//
// A case is a function of a Desk: it takes operands from the desk, calls one kernel, and hands in the results
// with their tolerance. To add a case, write a TEST_P(Conformance, ...) in the file of its op; to add a
// device, a line in conformance_devices.cpp.
#pragma once

#include <array>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/compare.h"
#include "weft/backend/plain_calls.h"
#include "weft/tensor/kernels.h"

namespace weft::conformance {

/// A device of a subject, with one thread and with other numbers of them; opened by the first test that asks.
struct Opened {
  std::unique_ptr<Device> one;
  std::vector<std::unique_ptr<Device>> others;
};
struct Subject {
  std::string name;
  std::function<std::unique_ptr<Device>(int threads)> open;
  std::vector<int> others = {3};  // numbers of threads
  std::string missing = {};       // why this build cannot open it; empty: it can
  // What its devices leave to plain loops, where it is asked.
  std::shared_ptr<PlainCalls> plain = std::make_shared<PlainCalls>();
  std::shared_ptr<Opened> opened = std::make_shared<Opened>();
};
std::ostream& operator<<(std::ostream& out, const Subject& subject);
/// For the name of a test.
std::string spelled(const ::testing::TestParamInfo<Subject>& info);

/// How operands lie in memory. Gaps and turned views are surrounded by guards that a kernel must not touch.
enum class Lay {
  contiguous,
  gaps,       // rows further apart than their length
  swapped,    // the first two dimensions the other way round
  scattered,  // every second element, in the last dimension too
};
inline constexpr std::array<Lay, 4> lays{Lay::contiguous, Lay::gaps, Lay::swapped, Lay::scattered};
inline constexpr std::array<Dtype, 3> floats{Dtype::f32, Dtype::bf16, Dtype::f16};
const char* word(Lay lay);

/// One device, operands that are the same on every device, and a place to hand in results.
class Desk {
 public:
  Desk(Device& device, Lay lay) : device_(&device), lay_(lay) {}

  Kernels& kernels() const { return device_->kernels(); }
  Device& device() const { return *device_; }

  /// Around zero, mostly within 3 deviations.
  Tensor normal(const Shape& shape, Dtype dtype = Dtype::f32, double deviation = 1);
  /// i32, i64 or u8 in [low, high).
  Tensor integers(const Shape& shape, Dtype dtype, std::int64_t low, std::int64_t high);
  Tensor holding(const Shape& shape, Dtype dtype, const std::vector<double>& values);
  /// For results: what is in it does not matter, and is no number.
  Tensor blank(const Shape& shape, Dtype dtype = Dtype::f32);
  /// The next operands lie so.
  void lay(Lay lay) { lay_ = lay; }

  void result(const char* name, const Tensor& tensor, Tolerance within);

  struct Result {
    std::string name;
    std::vector<double> numbers;
    Tolerance within;
  };
  const std::vector<Result>& results() const { return results_; }
  /// "" if nothing around the operands was written to.
  std::string guards() const;

 private:
  /// An operand, the whole memory that it lies in, and where in that its elements are.
  struct Sheet {
    Tensor whole, part;
    std::vector<std::int64_t> elements;
  };
  Device* device_;
  Lay lay_;
  std::uint64_t operands_ = 0;
  std::vector<Sheet> sheets_;
  std::vector<Result> results_;
};

/// What two right answers may differ by: each is rounded to the type once, after sums of `terms` numbers
/// around `scale` in f32.
Tolerance close(Dtype dtype, std::int64_t terms = 1, double scale = 1);

class Conformance : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override;
  using Act = std::function<void(Desk&)>;
  /// Runs act on the oracle and on the subject with one and with other numbers of threads.
  void same(const Act& act, Lay lay = Lay::contiguous);
  /// The same, and none of it in plain loops.
  void same_by_itself(const Act& act, Lay lay = Lay::contiguous);
  /// For every way to lie.
  void same_however_it_lies(const Act& act);

 private:
  std::unique_ptr<Device> oracle_;
};

/// Of GPUs that multiply by warpgroups.
class Warpgroups : public Conformance {};

/// Of devices that were opened for exact mode.
class InExactMode : public Conformance {};

/// Of backends that compute in double too.
class ConformanceInDoubles : public Conformance {};

}  // namespace weft::conformance
