#include "weft/launch/report.h"

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::launch {
namespace {

constexpr std::size_t others_shown = 8;

std::string indented(std::string_view lines) {
  std::string out;
  for (const std::string_view line : split(lines, '\n')) out += text("    ", line, "\n");
  return out;
}

}  // namespace

std::string one_line(const Failure& f) {
  const std::string where = text("node ", f.node, " (host ", f.host, ")");
  if (f.rank < 0) return text(where, ": ", f.what);
  if (!f.what.empty()) return text("rank ", f.rank, " on ", where, " ", f.what);
  const std::string who = f.ranks > 1 ? text("the process of ranks ", f.rank, " to ", f.rank + f.ranks - 1)
                                      : text("rank ", f.rank);
  return text(who, " on ", where, ": ", words_of(f.end));
}

std::string report_of(const Story& story) {
  const Failure& f = story.first;
  std::string out = text("launch: the job failed; ", story.why_it_ends, "\n  first: ", one_line(f), ", ",
                         human_duration(story.seconds), " after the start");
  if (f.rank >= 0 && f.what.empty())
    out += text("; ", f.ranks > 1 ? "" : text("local rank ", f.local_rank, ", "), "process ", f.process);
  out += "\n";
  if (!f.last_words.empty())
    out += text(f.what.empty() ? "  its last words:\n" : "  the others:\n", indented(f.last_words));
  if (!f.logs.empty()) out += text("  its logs: ", f.logs, "\n");
  for (std::size_t i = 0; i < story.others.size() && i < others_shown; ++i)
    out += text("  then: ", story.others[i], "\n");
  if (story.others.size() > others_shown)
    out += text("  and ", story.others.size() - others_shown, " more\n");
  return out;
}

}  // namespace weft::launch
