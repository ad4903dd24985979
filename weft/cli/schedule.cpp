// weft schedule: what every rank of a pipeline does when, before any of it runs.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/file.h"
#include "weft/base/flags.h"
#include "weft/cli/verbs.h"
#include "weft/mesh/draw.h"
#include "weft/pipe/choose.h"
#include "weft/pipe/draw.h"

namespace weft::cli {
namespace {

using nlohmann::json;
using pipe::Rehearsal;
using pipe::Schedule;

struct ScheduleOptions {
  int ranks = 0, microbatches = 0, chunks = 0, group = 0;
  int forward = 1, input = 1, weight = 1, transfer = 0;
  bool compare = false, json = false;
  std::string svg, write;
  int columns = 0;
  bool places = false;
  int tp = 1, cp = 1, dp = 1, ep = 1, etp = 0;
};

template <class Visitor>
void describe(Visitor& v, ScheduleOptions& o) {
  v("ranks", o.ranks, "pipeline ranks (0: 4, or those of the file)", legal::size_or_none);
  v("microbatches", o.microbatches, "microbatches in a step (0: 8, or those of the file)",
    legal::size_or_none);
  v("chunks", o.chunks, "stages a rank holds (0: 2 for interleaved and zb-v, else 1)", legal::size_or_none);
  v("group", o.group, "interleaved: microbatches through a chunk before the next (0: as many as ranks)",
    legal::size_or_none);
  constexpr double longest = 1000;  // times of a million of them fit into a number
  v("forward", o.forward, "time that forward takes in one stage", legal::from_to(1, longest));
  v("input", o.input, "time of the input half of backward", legal::from_to(1, longest));
  v("weight", o.weight, "time of its weight half", legal::from_to(1, longest));
  v("transfer", o.transfer, "time that a tensor travels between ranks", legal::from_to(0, longest));
  v("compare", o.compare, "a table of all schedules, for a rank with the same work under each");
  v("svg", o.svg, "write a picture to this file instead");
  v("write", o.write, "write the schedule to this file, to be changed and run by --pipeline-schedule FILE");
  v("columns", o.columns, "width of the drawing (0: that of the terminal)", legal::from_to(0, 10000));
  v("json", o.json, "one JSON object");
  v("places", o.places, "where every rank sits instead: its places along all axes, and who speaks to whom");
  v("tp", o.tp, "places: tensor-parallel ranks", legal::degree);
  v("cp", o.cp, "places: context-parallel ranks", legal::degree);
  v("dp", o.dp, "places: data-parallel ranks", legal::degree);
  v("ep", o.ep, "places: ranks that hold other experts", legal::degree);
  v("etp", o.etp, "places: ranks that share an expert (0: as many as tensor-parallel ones)",
    legal::from_to(0, 65536));
}

int columns_of(int asked) {
  if (asked > 0) return asked;
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 100;
}

int chunks_of(const std::string& name, int asked) {
  if (asked > 0) return asked;
  return name == "interleaved" || name == "zb-v" ? 2 : 1;
}

struct Played {
  Schedule schedule;
  Rehearsal rehearsal;
  double chunks() const { return double(schedule.stages()) / schedule.ranks; }
  double most_remembered(std::size_t rank) const { return rehearsal.peak_remembered[rank] / chunks(); }
};

/// A file is as large as it is; everything else is as large as was asked for.
pipe::Wanted wanted(const ScheduleOptions& o, const std::string& name) {
  pipe::Wanted out{.name = name,
                   .ranks = o.ranks > 0 ? o.ranks : 4,
                   .chunks = chunks_of(name, o.chunks),
                   .microbatches = o.microbatches > 0 ? o.microbatches : 8,
                   .group = o.group};
  const bool is_name = std::ranges::find(pipe::schedule_names, name) != pipe::schedule_names.end();
  if (is_name || !std::filesystem::exists(name)) return out;
  const Schedule written = pipe::read_schedule(read_file(name), name);
  if (o.ranks == 0) out.ranks = written.ranks;
  if (o.microbatches == 0) out.microbatches = written.microbatches;
  return out;
}

Played play(const ScheduleOptions& o, const std::string& name, const pipe::Costs& costs) {
  Played out{pipe::make_schedule(wanted(o, name)), {}};
  out.rehearsal = pipe::rehearse(pipe::with_transfers(out.schedule), costs);
  return out;
}

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out.precision(digits);
  out << std::fixed << value;
  return out.str();
}

std::string right(const std::string& word, std::size_t width) {
  return std::string(width > word.size() ? width - word.size() : 0, ' ') + word;
}

double waits(const Played& p, int rank) {
  int busy = 0;
  for (const pipe::TimedAction& span : p.rehearsal.spans)
    if (span.rank == rank) busy += span.end - span.begin;
  return 1 - double(busy) / p.rehearsal.duration;
}

void print_drawing(const Played& p, int columns) {
  const Schedule& s = p.schedule;
  const pipe::Paint paint = isatty(STDOUT_FILENO) != 0 ? pipe::Paint::colored : pipe::Paint::plain;
  std::cout << s.name << ": " << s.ranks << " ranks, " << s.microbatches << " microbatches, "
            << p.rehearsal.duration << " units of time, " << fixed(100 * p.rehearsal.bubble, 1)
            << " % of all ranks' time is bubble\n\n"
            << pipe::draw_text(s, p.rehearsal, {.columns = columns, .paint = paint})
            << "\n        remembers at most  waits\n";
  for (int r = 0; r < s.ranks; ++r)
    std::cout << "rank " << r << right(fixed(p.most_remembered(std::size_t(r)), 1), r < 10 ? 8 : 7)
              << " microbatches" << right(fixed(100 * waits(p, r), 1), 6) << " %\n";
}

json told(const Played& p) {
  json computations = json::array();
  constexpr std::array<const char*, 4> words{"forward", "backward", "backward_input", "backward_weight"};
  for (const pipe::TimedAction& span : p.rehearsal.spans)
    computations.push_back({{"rank", span.rank},
                            {"stage", span.action.stage},
                            {"microbatch", span.action.microbatch},
                            {"what", words[std::size_t(span.action.what)]},
                            {"begin", span.begin},
                            {"end", span.end}});
  json remembered = json::array();
  for (std::size_t r = 0; r < p.rehearsal.peak_remembered.size(); ++r)
    remembered.push_back(p.most_remembered(r));
  return {{"schedule", p.schedule.name},
          {"ranks", p.schedule.ranks},
          {"microbatches", p.schedule.microbatches},
          {"stages", p.schedule.home},
          {"duration", p.rehearsal.duration},
          {"bubble", p.rehearsal.bubble},
          {"most_remembered", remembered},
          {"computations", computations}};
}

/// Every schedule over the same model: a stage of two on a rank costs half of what the rank's only one does.
json compared(ScheduleOptions o) {
  const int chunks = o.chunks > 1 ? o.chunks : 2;
  json rows = json::array();
  for (const std::string_view name : pipe::schedule_names) {
    o.chunks = name == "interleaved" ? chunks : 0;
    const int share = 2 * chunks / chunks_of(std::string(name), o.chunks);
    json row{{"schedule", name}};
    try {
      const Played p = play(o, std::string(name),
                            {.forward = o.forward * share,
                             .backward_input = o.input * share,
                             .backward_weight = o.weight * share,
                             .transfer = o.transfer * 2 * chunks});
      double most = 0;
      for (std::size_t r = 0; r < p.rehearsal.peak_remembered.size(); ++r)
        most = std::max(most, p.most_remembered(r));
      row.update({{"stages", p.schedule.stages()},
                  {"duration", double(p.rehearsal.duration) / (2 * chunks)},
                  {"bubble", p.rehearsal.bubble},
                  {"most_remembered", most}});
    } catch (const Error& error) {
      row["refused"] = error.what();
    }
    rows.push_back(row);
  }
  return rows;
}

void print_comparison(const json& rows) {
  std::cout << "schedule     stages  time a step  bubble  remembers at most\n";
  for (const json& row : rows) {
    std::string name = row["schedule"];
    name.resize(12, ' ');
    std::cout << name;
    if (row.contains("refused"))
      std::cout << " " << row["refused"].get<std::string>() << "\n";
    else
      std::cout << right(std::to_string(row["stages"].get<int>()), 7) << right(fixed(row["duration"], 1), 13)
                << right(fixed(100 * row["bubble"].get<double>(), 1), 6) << " %"
                << right(fixed(row["most_remembered"], 1), 6) << " microbatches\n";
  }
}

void check_places(const ScheduleOptions& o) {
  constexpr std::int64_t most = 4096;
  const ScheduleOptions none;
  const bool told =
      o.tp != none.tp || o.cp != none.cp || o.dp != none.dp || o.ep != none.ep || o.etp != none.etp;
  if (told && !o.places)
    fail(Kind::usage, "schedule: --tp, --cp, --dp, --ep and --etp say who sits where: add --places");
  if (!o.places) return;
  std::int64_t ranks = std::max(o.ranks, 1);
  for (const int degree : {o.tp, o.cp, o.dp}) ranks *= std::clamp<std::int64_t>(degree, 1, most + 1);
  if (ranks > most || o.ep > most || o.etp > most)
    fail(Kind::usage, "schedule: more than ", most, " ranks are more than anybody can look at");
}

int run_places(const ScheduleOptions& o) {
  const ParallelLayout layout({.tp = o.tp,
                               .cp = o.cp,
                               .dp = o.dp,
                               .pp = std::max(o.ranks, 1),
                               .ep = o.ep,
                               .etp = o.ep > 1 && o.etp == 0 ? o.tp : o.etp});
  std::cout << draw_places(layout);
  return static_cast<int>(Exit::done);
}

void check_settings(const ScheduleOptions& o) {
  check_places(o);
  constexpr double most = 1'000'000;
  const int ranks = std::max(o.ranks, 1), microbatches = std::max(o.microbatches, 1);
  if (double(ranks) * microbatches * std::max(o.chunks, 2) > most)
    fail(Kind::usage, "schedule: ", ranks, " ranks times ", microbatches,
         " microbatches are more than anybody can look at");
}

int run_schedule(Args args) {
  ScheduleOptions options;
  Fields fields{options};
  const std::vector<std::string> names = read_flags(fields, args);
  if (names.size() > 1) fail(Kind::usage, "schedule: one name, found ", names[0], " and ", names[1]);
  check_settings(options);
  if (options.places) return run_places(options);
  if (options.compare) {
    const json rows = compared(options);
    if (options.json)
      std::cout << rows.dump(2) << "\n";
    else
      print_comparison(rows);
    return static_cast<int>(Exit::done);
  }
  const Played played = play(options, names.empty() ? "1f1b" : names[0],
                             {.forward = options.forward,
                              .backward_input = options.input,
                              .backward_weight = options.weight,
                              .transfer = options.transfer});
  if (!options.svg.empty()) write_atomically(options.svg, pipe::draw_svg(played.schedule, played.rehearsal));
  if (!options.write.empty()) write_atomically(options.write, pipe::write_schedule(played.schedule));
  if (options.json)
    std::cout << told(played).dump(2) << "\n";
  else if (options.svg.empty() && options.write.empty())
    print_drawing(played, columns_of(options.columns));
  return static_cast<int>(Exit::done);
}

VerbHelp about_schedule() {
  VerbHelp help{
      .usage = "weft schedule [gpipe|1f1b|interleaved|zb-h1|zb-v|FILE] [options]",
      .examples = {{"weft schedule 1f1b --ranks 4 --microbatches 8", "what every rank does when"},
                   {"weft schedule --compare --ranks 8 --microbatches 32",
                    "time and memory of all schedules"},
                   {"weft schedule zb-v --forward 2 --input 3 --weight 2 --transfer 1",
                    "with costs as they were measured"},
                   {"weft schedule --places --ranks 2 --tp 2 --cp 2 --dp 2 --ep 4 --etp 1",
                    "who sits where, to dense layers and to experts, and who speaks to whom"},
                   {"weft schedule interleaved --chunks 3 --svg interleaved.svg", "a picture"},
                   {"weft schedule zb-h1 --write mine.txt",
                    "as text, to change by hand and to run: weft train gpt --pipeline-schedule mine.txt"}},
      .topics = {}};
  ScheduleOptions options;
  const Fields fields{options};
  Topic topic{"Options", {}};
  for (const auto& field : fields.all())
    topic.options.push_back({flag_of(*field), value_name(*field), help_with_default(*field)});
  help.topics.push_back(std::move(topic));
  return help;
}

}  // namespace

Verb schedule_verb() {
  return {"schedule", "draws a pipeline schedule, with its bubble and memory", run_schedule, about_schedule};
}

}  // namespace weft::cli
