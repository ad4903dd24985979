#include "weft/launch/report.h"

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::launch {
namespace {

constexpr std::size_t others_shown = 8, told_to_others = 4 << 10;

std::string indented(std::string_view lines) {
  std::string out;
  for (const std::string_view line : split(lines, '\n')) out += text("    ", line, "\n");
  return out;
}

/// As far as it is known: what mpirun or srun put somewhere may not say.
std::string where_of(const Failure& f) {
  if (f.host.empty()) return f.node < 0 ? "" : text("node ", f.node);
  return f.node < 0 ? text("host ", f.host) : text("node ", f.node, " (host ", f.host, ")");
}

std::string who_of(const Failure& f) {
  if (!f.launcher.empty()) return f.launcher;
  return f.ranks > 1 ? text("the process of ranks ", f.rank, " to ", f.rank + f.ranks - 1)
                     : text("rank ", f.rank);
}

/// "; local rank 1, process 4242", of which either may not be known.
std::string seat_of(const Failure& f) {
  if (f.rank < 0 || !f.what.empty()) return "";
  const bool rank = f.ranks == 1 && f.local_rank >= 0, process = f.process > 0;
  return text(rank || process ? "; " : "", rank ? text("local rank ", f.local_rank) : "",
              rank && process ? ", " : "", process ? text("process ", f.process) : "");
}

}  // namespace

std::string one_line(const Failure& f) {
  const std::string where = where_of(f);
  if (f.rank < 0) return text(where, ": ", f.what);
  const std::string on = where.empty() ? "" : text(" on ", where);
  if (!f.what.empty()) return text("rank ", f.rank, on, " ", f.what);
  return text(who_of(f), on, ": ", words_of(f.end));
}

std::string not_missed_yet(const Failure& silence) {
  return text("launch: ", one_line(silence), "; the others still work\n");
}

std::string report_of(const Story& story) {
  const Failure& f = story.first;
  std::string out = text("launch: the job failed; ", story.why_it_ends, "\n  first: ", one_line(f), ", ",
                         human_duration(story.seconds), " after the start", seat_of(f), "\n");
  if (!f.last_words.empty())
    out += text(f.what.empty() ? "  its last words:\n" : "  the others:\n", indented(f.last_words));
  if (!f.logs.empty()) out += text("  its logs: ", f.logs, "\n");
  for (std::size_t i = 0; i < story.others.size() && i < others_shown; ++i)
    out += text("  then: ", story.others[i], "\n");
  if (story.others.size() > others_shown)
    out += text("  and ", story.others.size() - others_shown, " more\n");
  return out;
}

std::string shortened(const std::string& report) {
  if (report.size() <= told_to_others) return report;
  const auto last = report.rfind('\n', told_to_others);
  return text(report.substr(0, last == report.npos ? 0 : last + 1),
              "  and more, which the node where the agents met tells\n");
}

}  // namespace weft::launch
