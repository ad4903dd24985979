// A schedule as a picture: ranks from top to bottom, time from left to right.
#pragma once

#include <string>

#include "weft/pipe/rehearse.h"

namespace weft::pipe {

enum class Paint : std::uint8_t { plain, colored };  // colors of a terminal

struct DrawOptions {
  int columns = 100;  // of the terminal; a longer picture goes on below
  Paint paint = Paint::plain;
};

/// A word a computation: F0 forward of microbatch 0, B0 backward, I0 and W0 its two halves; where a rank
/// holds several stages a letter says which: F0b is its second. A stroke goes on with it, a dot is a unit of
/// waiting.
std::string draw_text(const Schedule& schedule, const Rehearsal& played, const DrawOptions& options = {});
/// A picture of its own size.
std::string draw_svg(const Schedule& schedule, const Rehearsal& played);

}  // namespace weft::pipe
