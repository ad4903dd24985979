// Both pictures are made from the spans that a rehearsal leaves.
#include "weft/pipe/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "weft/base/error.h"

namespace weft::pipe {
namespace {

/// How a kind of computation looks: its letter, its color in a terminal, and in a picture.
struct Look {
  char letter;
  int ansi;
  const char* fill;
  const char* legend;
};
constexpr std::array<Look, 4> looks{Look{'F', 44, "#4c78a8", "forward"}, Look{'B', 42, "#54a24b", "backward"},
                                    Look{'I', 46, "#72b7b2", "input gradient"},
                                    Look{'W', 43, "#eeca3b", "weight gradient"}};
const Look& look_of(Do what) { return looks[std::size_t(what)]; }

/// Which of its rank's stages this is, counted from 0.
int chunk_of(const Schedule& s, int stage) {
  const auto begin = s.home.begin();
  return int(std::count(begin, begin + stage, s.home[std::size_t(stage)]));
}

std::string label_of(const Schedule& s, const Action& a) {
  std::string label = text(look_of(a.what).letter, a.microbatch);
  if (s.stages() > s.ranks) label += char('a' + chunk_of(s, a.stage) % 26);
  return label;
}

/// The greatest unit of time that all begin and end on, so that no column is wasted.
int unit_of(const Rehearsal& played) {
  int unit = 0;
  for (const TimedAction& span : played.spans) unit = std::gcd(std::gcd(unit, span.begin), span.end);
  return std::max(unit, 1);
}

/// A grid of cells, one a rank and unit of time, each `width` columns and a blank.
class TextPicture {
 public:
  TextPicture(const Schedule& s, const Rehearsal& played, const DrawOptions& options)
      : s_(s), played_(played), options_(options), unit_(unit_of(played)) {
    for (const TimedAction& span : played.spans) {
      const int cells = std::max(1, (span.end - span.begin) / unit_);
      width_ = std::max(width_, (int(label_of(s, span.action).size()) + cells) / cells);
    }
    name_width_ = int(text("rank ", s.ranks - 1).size()) + 2;
    for (const TimedAction& span : played.spans) rows_[std::size_t(span.rank)].push_back(span);
  }

  std::string draw() const {
    const int units = played_.duration / unit_;
    const int a_band = std::max(1, (options_.columns - name_width_) / width_);
    std::string out;
    for (int from = 0; from < units; from += a_band) {
      const int to = std::min(from + a_band, units);
      if (from > 0) out += "\n";
      out += axis(from, to);
      for (int r = 0; r < s_.ranks; ++r) out += row(r, from, to);
    }
    return out;
  }

 private:
  std::string padded(std::string name) const {
    name.resize(std::size_t(name_width_), ' ');
    return name;
  }
  std::string axis(int from, int to) const {
    constexpr int apart = 5;
    std::string line = padded("time");
    for (int at = from; at < to; ++at) {
      if (at % apart != 0) continue;
      const int column = name_width_ + (at - from) * width_;
      line.resize(std::size_t(column), ' ');
      line += text(at * unit_);
    }
    return line + "\n";
  }
  std::string row(int rank, int from, int to) const {
    std::string line = padded(text("rank ", rank));
    int at = from;
    for (const TimedAction& span : rows_[std::size_t(rank)]) {
      const int begin = std::max(span.begin / unit_, from), end = std::min(span.end / unit_, to);
      if (begin >= end) continue;
      for (; at < begin; ++at) line += cell("·", 1);
      const bool begins = span.begin / unit_ >= from;
      line += block(span.action, begins ? label_of(s_, span.action) : "", (end - begin) * width_ - 1);
      at = end;
    }
    for (; at < to; ++at) line += cell("·", 1);
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  }
  std::string cell(const char* mark, int columns) const {
    return mark + std::string(std::size_t(width_) - std::size_t(columns), ' ');
  }
  std::string block(const Action& a, std::string label, int columns) const {
    const int left = columns - int(label.size());
    if (options_.paint == Paint::plain) {
      for (int i = 0; i < left; ++i) label += "─";
      return label + " ";
    }
    label.append(std::size_t(std::max(left, 0)), ' ');
    const int shade = chunk_of(s_, a.stage) % 2 == 1 ? 60 : 0;  // the bright half of the colors
    return text("\033[30;", look_of(a.what).ansi + shade, "m", label, "\033[0m ");
  }

  const Schedule& s_;
  const Rehearsal& played_;
  DrawOptions options_;
  int unit_;
  int width_ = 2, name_width_ = 0;
  std::vector<std::vector<TimedAction>> rows_ = std::vector<std::vector<TimedAction>>(std::size_t(s_.ranks));
};

std::string number(double value) {
  std::array<char, 32> digits{};
  const int length = std::snprintf(digits.data(), digits.size(), "%.1f", value);
  return {digits.data(), std::size_t(length)};
}

constexpr int row_height = 26, left = 64, top = 40;

std::string svg_span(const Schedule& s, const TimedAction& span, double unit) {
  const double x = left + span.begin * unit, width = (span.end - span.begin) * unit;
  const int y = top + span.rank * row_height;
  const char* opacity = chunk_of(s, span.action.stage) % 2 == 1 ? "0.6" : "1";
  return text("<rect x=\"", number(x), "\" y=\"", y, "\" width=\"", number(width - 1), "\" height=\"",
              row_height - 4, "\" fill=\"", look_of(span.action.what).fill, "\" fill-opacity=\"", opacity,
              "\"/><text x=\"", number(x + width / 2), "\" y=\"", y + 15, "\" text-anchor=\"middle\">",
              span.action.microbatch, "</text>\n");
}

std::string svg_legend(const Schedule& s, int y) {
  std::string out;
  int x = left;
  for (std::size_t kind = 0; kind < looks.size(); ++kind) {
    const auto used = [&](const std::vector<Action>& program) {
      return std::ranges::any_of(program, [&](const Action& a) { return a.what == Do(kind); });
    };
    if (std::ranges::none_of(s.program, used)) continue;
    out += text("<rect x=\"", x, "\" y=\"", y, "\" width=\"14\" height=\"14\" fill=\"", looks[kind].fill,
                "\"/><text x=\"", x + 20, "\" y=\"", y + 11, "\">", looks[kind].legend, "</text>\n");
    x += 130;
  }
  return out;
}

}  // namespace

std::string draw_text(const Schedule& schedule, const Rehearsal& played, const DrawOptions& options) {
  return TextPicture(schedule, played, options).draw();
}

std::string draw_svg(const Schedule& schedule, const Rehearsal& played) {
  const double unit = 22.0 / unit_of(played);
  const int width = left + int(std::lround(unit * played.duration)) + 20;
  const int bottom = top + schedule.ranks * row_height;
  std::string out =
      text("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", bottom + 34,
           "\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"", width, "\" height=\"",
           bottom + 34, "\" fill=\"white\"/>\n<text x=\"", left, "\" y=\"24\" font-size=\"14\">",
           schedule.name, ": ", schedule.ranks, " ranks, ", schedule.microbatches, " microbatches, ",
           number(100 * played.bubble), " % bubble</text>\n");
  for (int r = 0; r < schedule.ranks; ++r)
    out += text("<text x=\"", left - 8, "\" y=\"", top + r * row_height + 15, "\" text-anchor=\"end\">rank ",
                r, "</text>\n");
  for (const TimedAction& span : played.spans) out += svg_span(schedule, span, unit);
  return out + svg_legend(schedule, bottom + 8) + "</svg>\n";
}

}  // namespace weft::pipe
