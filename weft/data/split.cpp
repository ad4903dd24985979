// Splits, in the order of double operations that decides which document lies on which side.
#include "weft/data/split.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "weft/base/error.h"

namespace weft::data {
namespace {

// Megatron reads what is a digit or a point and passes over all else, so that "nan, 1, 1" is two numbers;
// here a word is one or none. Quotes are passed over, too: its own scripts have some that no shell takes off.
std::vector<double> numbers_in(std::string_view text) {
  std::vector<double> numbers;
  constexpr std::string_view between = " \t,;/[]()'\"", digits = ".0123456789";
  for (std::size_t at = text.find_first_not_of(between); at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(between, at), text.size());
    const std::string word(text.substr(at, end - at));
    char* rest = nullptr;
    numbers.push_back(std::strtod(word.c_str(), &rest));
    if (*rest != '\0' || word.find_first_not_of(digits) != std::string::npos)
      fail(Kind::usage, "{data.split} ", text, ": ", word, " is not a number of 0 or more");
    at = text.find_first_not_of(between, end);
  }
  return numbers;
}

}  // namespace

std::string_view name(Split split) {
  constexpr std::array<std::string_view, 3> names = {"train", "valid", "test"};
  return names[static_cast<std::size_t>(split)];
}

std::array<double, 3> split_weights(std::string_view text) {
  std::vector<double> w = numbers_in(text);
  if (w.size() > 3) {
    fail(Kind::usage, "{data.split} ", text, ": ", w.size(),
         " numbers, expected at most 3 (train, valid, test)");
  }
  w.resize(3, 0.0);
  const double sum = (w[0] + w[1]) + w[2];
  if (!(sum > 0)) fail(Kind::usage, "{data.split} ", text, ": the weights sum to 0, expected one above 0");
  return {w[0] / sum, w[1] / sum, w[2] / sum};
}

SplitMatrix split_matrix(const std::array<double, 3>& weights) {
  SplitMatrix matrix;
  double begin = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double end = begin + weights[i];
    if (end > begin) matrix[i] = Portion{begin, end};
    begin = end;
  }
  return matrix;
}

SplitMatrix split_matrix(std::string_view text) { return split_matrix(split_weights(text)); }

Range range_of(const Portion& portion, std::int64_t count) {
  const auto n = static_cast<double>(count);
  return {static_cast<std::int64_t>(std::nearbyint(portion.begin * n)),
          static_cast<std::int64_t>(std::nearbyint(portion.end * n))};
}

}  // namespace weft::data
