#include "weft/base/format.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace weft {
namespace {

std::string one_decimal(double x, std::string_view unit) {
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%.1f", x);
  return std::string(out.data()) + " " + std::string(unit);
}

std::string two_parts(std::int64_t whole, std::string_view unit, std::int64_t part,
                      std::string_view part_unit) {
  return text(whole, " ", unit, part < 10 ? " 0" : " ", part, " ", part_unit);
}

// Divides by `base` until one decimal of it prints below `base`.
template <std::size_t n>
std::string scaled(double x, double base, const std::array<std::string_view, n>& units) {
  std::size_t unit = 0;
  while (std::abs(x) >= base - 0.05 && unit + 1 < n) {
    x /= base;
    ++unit;
  }
  return one_decimal(x, units[unit]);
}

}  // namespace

std::vector<std::string_view> split(std::string_view line, char mark) {
  std::vector<std::string_view> out;
  for (;;) {
    const auto at = line.find(mark);
    out.push_back(line.substr(0, at));
    if (at == std::string_view::npos) return out;
    line.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view line) {
  constexpr std::string_view blank = " \t\r\n";
  const auto first = line.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(blank) - first + 1);
}

std::string lower(std::string_view ascii) {
  std::string out(ascii);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string human_bytes(std::int64_t bytes) {
  if (bytes > -1024 && bytes < 1024) return text(bytes, " B");
  constexpr std::array<std::string_view, 6> units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return scaled(static_cast<double>(bytes) / 1024, 1024, units);
}

std::string human_count(double count) {
  if (std::abs(count) < 999.5) return text(std::llround(count));
  constexpr std::array<std::string_view, 6> units = {"k", "M", "G", "T", "P", "E"};
  return scaled(count / 1000, 1000, units);
}

std::string human_duration(double seconds) {
  if (std::isnan(seconds)) return "unknown";
  if (seconds < 0) return "-" + human_duration(-seconds);
  if (seconds < 0.9995) return text(std::llround(seconds * 1000), " ms");
  if (seconds < 59.95) return one_decimal(seconds, "s");
  if (seconds > 1e15) return "for ever";
  const std::int64_t s = std::llround(seconds);
  if (s < 3600) return two_parts(s / 60, "min", s % 60, "s");
  const std::int64_t m = std::llround(seconds / 60);
  if (m < 24 * 60) return two_parts(m / 60, "h", m % 60, "min");
  const std::int64_t h = std::llround(seconds / 3600);
  return two_parts(h / 24, "d", h % 24, "h");
}

}  // namespace weft
