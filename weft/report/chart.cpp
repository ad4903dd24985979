#include "weft/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "weft/base/error.h"

namespace weft::report {
namespace {

struct Box {
  double left, right, low, high;
};

Box box_of(std::span<const Point> points) {
  Box box{points.front().x, points.front().x, points.front().y, points.front().y};
  for (const Point& p : points) {
    box.left = std::min(box.left, p.x);
    box.right = std::max(box.right, p.x);
    box.low = std::min(box.low, p.y);
    box.high = std::max(box.high, p.y);
  }
  if (box.right == box.left) box.right += 1;
  if (box.high == box.low) box.high += 1;
  return box;
}

int scaled(double value, double from, double to, int steps) {
  return int(std::lround((value - from) / (to - from) * (steps - 1)));
}

/// Cells of a character: one for its upper half, one for its lower.
std::string mark(bool upper, bool lower) {
  if (upper && lower) return "█";
  return upper ? "▀" : lower ? "▄" : " ";
}

/// About five of them in [from, to], for an axis.
std::vector<double> round_numbers(double from, double to) {
  const double rough = (to - from) / 5;
  const double unit = std::pow(10, std::floor(std::log10(rough)));
  const double step = unit * (rough > 5 * unit ? 10 : rough > 2 * unit ? 5 : rough > unit ? 2 : 1);
  std::vector<double> out;
  for (double i = std::ceil(from / step); i * step <= to; ++i) out.push_back(i * step);
  return out;
}

}  // namespace

std::string text_chart(std::span<const Point> points, const ChartOptions& options) {
  if (points.empty()) return "";
  const Box box = box_of(points);
  const int cells = 2 * options.rows;
  std::vector<std::vector<bool>> grid(std::size_t(cells), std::vector<bool>(std::size_t(options.columns)));
  for (const Point& p : points)
    grid[std::size_t(cells - 1 - scaled(p.y, box.low, box.high, cells))]
        [std::size_t(scaled(p.x, box.left, box.right, options.columns))] = true;
  std::string out = options.title + "\n";
  const bool small = std::max(std::abs(box.high), std::abs(box.low)) < 0.1;  // three places would say little
  for (int row = 0; row < options.rows; ++row) {
    const double value = box.high - (box.high - box.low) * row / std::max(1, options.rows - 1);
    out += small ? fmt::format("{:>9.2e} │", value) : fmt::format("{:>9.3f} │", value);
    const auto& upper = grid[2 * std::size_t(row)];
    const auto& lower = grid[2 * std::size_t(row) + 1];
    for (std::size_t column = 0; column < upper.size(); ++column) out += mark(upper[column], lower[column]);
    out += "\n";
  }
  out += std::string(10, ' ') + "└";
  for (int column = 0; column < options.columns; ++column) out += "─";
  return out + fmt::format("\n{:11}{:<{}g}{:>{}g}\n", "", box.left, options.columns / 2, box.right,
                           options.columns - options.columns / 2);
}

std::string svg_chart(std::span<const Point> points, const ChartOptions& options) {
  if (points.empty()) return "";
  const Box box = box_of(points);
  const auto across = [&](double x) { return 60 + 640 * (x - box.left) / (box.right - box.left); };
  const auto down = [&](double y) { return 280 - 240 * (y - box.low) / (box.high - box.low); };
  std::string grid, labels, path;
  for (const double y : round_numbers(box.low, box.high)) {
    grid += fmt::format("M60 {0:.1f}H700", down(y));
    labels += fmt::format("<text x=\"54\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n", down(y) + 4, y);
  }
  for (const double x : round_numbers(box.left, box.right))
    labels += fmt::format("<text x=\"{:.1f}\" y=\"298\" text-anchor=\"middle\">{:g}</text>\n", across(x), x);
  for (const Point& p : points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", across(p.x), down(p.y));
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 320\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"720\" height=\"320\" fill=\"white\"/>\n"
      "<text x=\"60\" y=\"24\" font-size=\"14\">{}</text>\n<path d=\"{}\" stroke=\"#ddd\"/>\n"
      "<path d=\"M60 40V280H700\" fill=\"none\" stroke=\"#888\"/>\n{}"
      "<text x=\"380\" y=\"315\" text-anchor=\"middle\">iteration</text>\n"
      "<path d=\"{}\" fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"1.6\"/>\n</svg>\n",
      options.title, grid, labels, path);
}

std::vector<Point> read_curve(const std::string& jsonl, const std::string& key) {
  std::vector<Point> points;
  std::istringstream lines(jsonl);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto entry = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    // A run that was killed leaves a line unfinished.
    if (entry.is_discarded() && line.starts_with("{\"")) continue;
    if (!entry.is_object()) fail(Kind::data, "plot: line ", number, " is not a JSON object");
    if (entry.contains("evaluation") || !entry.contains(key) || !entry[key].is_number()) continue;
    points.push_back({entry.value("iteration", 0.0), entry[key].get<double>()});
  }
  return points;
}

}  // namespace weft::report
