// A curve as text for a terminal, and as a picture for a page.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace weft::report {

struct Point {
  double x, y;
};
struct ChartOptions {
  std::string title;
  int columns = 72, rows = 16;  // of the drawing area, in characters
};

/// Lines of characters, two points a character high; "" for no points.
std::string text_chart(std::span<const Point> points, const ChartOptions& options);
/// A picture of 720 by 320.
std::string svg_chart(std::span<const Point> points, const ChartOptions& options);
/// The values of a key over iterations in a log of JSON lines; lines without it are passed over.
std::vector<Point> read_curve(const std::string& jsonl, const std::string& key);

}  // namespace weft::report
