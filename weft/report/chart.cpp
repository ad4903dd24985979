// Scaling points into a box.
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
  for (int row = 0; row < options.rows; ++row) {
    const double value = box.high - (box.high - box.low) * row / std::max(1, options.rows - 1);
    out += fmt::format("{:>9.3f} │", value);
    const auto& upper = grid[2 * std::size_t(row)];
    const auto& lower = grid[2 * std::size_t(row) + 1];
    for (std::size_t column = 0; column < upper.size(); ++column) out += mark(upper[column], lower[column]);
    out += "\n";
  }
  out += std::string(10, ' ') + "└";
  for (int column = 0; column < options.columns; ++column) out += "─";
  return out + fmt::format("\n{:<{}g}{:>{}g}\n", box.left, 11 + options.columns / 2, box.right,
                           options.columns - options.columns / 2);
}

std::string svg_chart(std::span<const Point> points, const ChartOptions& options) {
  if (points.empty()) return "";
  const Box box = box_of(points);
  std::string path;
  for (const Point& p : points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L",
                        60 + 640 * (p.x - box.left) / (box.right - box.left),
                        290 - 250 * (p.y - box.low) / (box.high - box.low));
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 320\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"720\" height=\"320\" fill=\"white\"/>\n"
      "<text x=\"60\" y=\"24\" font-size=\"14\">{}</text>\n<path d=\"M60 40V290H700\" fill=\"none\" "
      "stroke=\"#888\"/>\n<text x=\"54\" y=\"44\" text-anchor=\"end\">{:.2f}</text>\n"
      "<text x=\"54\" y=\"294\" text-anchor=\"end\">{:.2f}</text>\n<text x=\"60\" y=\"308\">{:g}</text>\n"
      "<text x=\"700\" y=\"308\" text-anchor=\"end\">{:g}</text>\n"
      "<path d=\"{}\" fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"1.6\"/>\n</svg>\n",
      options.title, box.high, box.low, box.left, box.right, path);
}

std::vector<Point> read_curve(const std::string& jsonl, const std::string& key) {
  std::vector<Point> points;
  std::istringstream lines(jsonl);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto entry = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!entry.is_object()) fail(Kind::data, "plot: line ", number, " is not a JSON object");
    if (entry.contains("evaluation") || !entry.contains(key) || !entry[key].is_number()) continue;
    points.push_back({entry.value("iteration", 0.0), entry[key].get<double>()});
  }
  return points;
}

}  // namespace weft::report
