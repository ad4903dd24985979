// Edit distance over known names; a swap of neighbors counts as one slip.
#include "weft/base/nearest.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"

namespace weft {
namespace {

std::size_t slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::string_view nearest(std::string_view typed, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, typed.size() / 3) + 1;
  for (const std::string_view name : known)
    if (const std::size_t n = slips(typed, name); n < least) {
      least = n;
      best = name;
    }
  return best;
}

std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known) {
  const std::string_view close = nearest(typed, known);
  return close.empty() ? "" : text(", did you mean ", close);
}

}  // namespace weft
