// Operands, guards, and the comparison.
#include "tests/backend/conformance.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "tests/support/numbers.h"
#include "weft/backend/open.h"
#include "weft/base/random.h"

namespace weft::conformance {
namespace {

constexpr double guard = 3;  // every type can hold it

/// Offsets of all elements from the storage's start, in order.
std::vector<std::int64_t> offsets_of(const Tensor& tensor) {
  std::vector<std::int64_t> out;
  if (tensor.elements() == 0) return out;
  out.reserve(std::size_t(tensor.elements()));
  out.push_back(tensor.offset());
  // From the last dimension to the first, each repeats what is there: in order when read by rows.
  std::vector<std::int64_t> inner;
  for (int d = tensor.rank() - 1; d >= 0; --d) {
    inner.swap(out);
    out.clear();
    for (std::int64_t i = 0; i < tensor.dim(d); ++i)
      for (const std::int64_t at : inner) out.push_back(at + i * tensor.stride(d));
  }
  return out;
}

Tensor placed(Device& device, const Shape& shape, Dtype dtype, Lay lay) {
  Dims dims = shape;
  const int rank = shape.rank();
  if (lay == Lay::gaps) {
    dims[-1] += 3;
    if (rank > 1) dims[0] += 1;
    const Tensor wider = empty(device, Shape(dims), dtype).slice(-1, 2, shape[-1]);
    return rank > 1 ? wider.slice(0, 1, shape[0]) : wider;
  }
  if (lay == Lay::swapped && rank > 1) {
    std::swap(dims[0], dims[1]);
    const Tensor other = empty(device, Shape(dims), dtype);
    return rank == 2   ? other.permute({1, 0})
           : rank == 3 ? other.permute({1, 0, 2})
                       : other.permute({1, 0, 2, 3});
  }
  if (lay == Lay::scattered && rank < Dims::max_rank) {
    dims.push_back(2);
    return empty(device, Shape(dims), dtype).at(-1, 1);
  }
  return empty(device, shape, dtype);
}

/// The whole storage of a view, as one run.
Tensor whole_of(const Tensor& part) {
  return {part.storage(), {part.storage()->bytes() / size_of(part.dtype())}, part.dtype()};
}

}  // namespace

std::string spelled(const ::testing::TestParamInfo<Subject>& info) {
  std::string out = info.param.name;
  for (char& c : out) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out;
}

std::ostream& operator<<(std::ostream& out, const Subject& subject) { return out << subject.name; }

const char* word(Lay lay) {
  constexpr std::array<const char*, 4> words{"contiguous", "with gaps", "swapped", "scattered"};
  return words[static_cast<std::size_t>(lay)];
}

// Four bytes added are near enough to normal; the whole word below them fills every bit of a float. The words
// are a congruence's, mixed: they need be no better than different.
Tensor Desk::normal(const Shape& shape, Dtype dtype, double deviation) {
  std::uint64_t state = 0x9E3779B97F4A7C15U * ++operands_;
  std::vector<double> values(std::size_t(shape.elements()));
  for (double& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto w = std::uint32_t((state ^ state >> 29) >> 32);
    const double bytes = double((w & 255U) + (w >> 8 & 255U) + (w >> 16 & 255U) + (w >> 24));
    value = deviation * (bytes - 510 + double(w) * 0x1p-32) / 147.8;
  }
  return holding(shape, dtype, values);
}

Tensor Desk::integers(const Shape& shape, Dtype dtype, std::int64_t low, std::int64_t high) {
  const Draw draw({.seed = 7, .purpose = Purpose::test, .step = operands_++});
  std::vector<double> values(std::size_t(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = double(low + draw.word(i) % (high - low));
  return holding(shape, dtype, values);
}

Tensor Desk::holding(const Shape& shape, Dtype dtype, const std::vector<double>& values) {
  const Tensor part = shape.elements() == 0 || shape.rank() > 4 ? empty(*device_, shape, dtype)
                                                                : placed(*device_, shape, dtype, lay_);
  Sheet sheet{whole_of(part), part, offsets_of(part)};
  std::vector<double> around(std::size_t(sheet.whole.elements()), guard);
  for (std::size_t i = 0; i < values.size(); ++i) around[std::size_t(sheet.elements[i])] = values[i];
  put(sheet.whole, around);
  sheets_.push_back(std::move(sheet));
  return part;
}

Tensor Desk::blank(const Shape& shape, Dtype dtype) {
  const double nothing = is_float(dtype) ? std::numeric_limits<double>::quiet_NaN() : 77;
  return holding(shape, dtype, std::vector<double>(std::size_t(shape.elements()), nothing));
}

void Desk::result(const char* name, const Tensor& tensor, Tolerance within) {
  const std::vector<double> around = numbers(whole_of(tensor));
  std::vector<double> found;
  for (const std::int64_t at : offsets_of(tensor)) found.push_back(around[std::size_t(at)]);
  results_.push_back({name, std::move(found), within});
}

std::string Desk::guards() const {
  for (std::size_t i = 0; i < sheets_.size(); ++i) {
    std::vector<double> around = numbers(sheets_[i].whole);
    for (const std::int64_t at : sheets_[i].elements) around[std::size_t(at)] = guard;
    for (std::size_t at = 0; at < around.size(); ++at)
      if (around[at] != guard) return text("operand ", i, " was written to outside of its elements, at ", at);
  }
  return "";
}

// A rounding on each side may give neighbours. f32 kernels evaluate exp and the like with a few roundings. A
// sum of n terms grows to sqrt(n) and rounds n times, mostly to and fro: n roundings in all, and 4 deviations
// for the many elements that are looked at.
Tolerance close(Dtype dtype, std::int64_t terms, double scale) {
  const double relative = 2 * rounding(dtype) + 8 * rounding(Dtype::f32);
  return {relative, 4 * scale * double(terms + 4) * rounding(Dtype::f32)};
}

void Conformance::SetUp() {
  if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
  oracle_ = open_device("cpu:reference", {.threads = 1});
  Opened& subject = *GetParam().opened;
  if (subject.one) return;
  subject.one = GetParam().open(1);
  for (const int threads : GetParam().others) subject.others.push_back(GetParam().open(threads));
}

void Conformance::same(const Act& act, Lay lay) {
  SCOPED_TRACE(word(lay));
  Desk expected(*oracle_, lay);
  Desk found(*GetParam().opened->one, lay);
  act(expected);
  act(found);
  ASSERT_FALSE(expected.results().empty());
  for (std::size_t i = 0; i < expected.results().size(); ++i) {
    const Desk::Result& right = expected.results()[i];
    ASSERT_EQ(difference(found.results()[i].numbers, right.numbers, right.within), "") << right.name;
  }
  ASSERT_EQ(found.guards(), "");
  for (const auto& other : GetParam().opened->others) {
    Desk threaded(*other, lay);
    act(threaded);
    for (std::size_t i = 0; i < found.results().size(); ++i)
      ASSERT_EQ(difference(threaded.results()[i].numbers, found.results()[i].numbers, exactly), "")
          << found.results()[i].name << " depends on the number of threads";
  }
}

void Conformance::same_by_itself(const Act& act, Lay lay) {
  GetParam().plain->clear();
  same(act, lay);
  // Random operands are no affair of these.
  GetParam().plain->erase("random_normal");
  EXPECT_EQ(*GetParam().plain, PlainCalls()) << word(lay);
}

void Conformance::same_however_it_lies(const Act& act) {
  for (const Lay lay : lays) same(act, lay);
}

}  // namespace weft::conformance
