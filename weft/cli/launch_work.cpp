// From options to the command lines and variables of workers.
#include "weft/cli/launch_work.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/pulse.h"
#include "weft/cli/verb.h"
#include "weft/launch/contract.h"
#include "weft/launch/elsewhere.h"
#include "weft/launch/herald.h"
#include "weft/launch/placement.h"
#include "weft/launch/seat.h"
#include "weft/launch/socket.h"
#include "weft/launch/watch.h"

namespace weft::cli {
namespace {

using launch::By;
using launch::Streams;
using launch::Worker;

void replace_all(std::string& in, std::string_view what, const std::string& by) {
  for (auto at = in.find(what); at != std::string::npos; at = in.find(what, at + by.size()))
    in.replace(at, what.size(), by);
}

/// Of a round: whoever was killed may still hold the one before.
std::filesystem::path board_of(const Launch& l, int round) { return l.folder / text("pulse_", round); }

std::string watcher_of(const Launch& l, int round) {
  launch::Watcher out{.period = launch::Watch(l.options.hang).period(),
                      .hosts = {},
                      .port = port_of(l.ward),
                      .token = l.ward_token,
                      .round = round};
  out.hosts =
      l.options.local_address.empty() ? launch::own_addresses() : std::vector{l.options.local_address};
  return to_word(out);
}

std::vector<std::string> program_words(const Launch& l, const launch::Begin& begin) {
  if (!l.program.trains) return l.program.words;
  std::vector<std::string> words{l.weft.string()};
  const bool goes_on = begin.round > 1 && newest_step(l.program) > 0;
  const auto rest = goes_on ? words_to_go_on(l.program) : l.program.words;
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

Streams streams(bool out, bool err) { return static_cast<Streams>((out ? 1 : 0) | (err ? 2 : 0)); }

void route(const Launch& l, Worker& w, int round) {
  const launch::Options& o = l.options;
  const Streams redirects = o.redirects.of(w.local_rank), tee = o.tee.of(w.local_rank);
  const auto files = [&](Streams s) { return has(redirects, s) || has(tee, s); };
  const auto console = [&](Streams s) { return !has(redirects, s) || has(tee, s); };
  w.files = streams(files(Streams::out), files(Streams::err));
  w.console = streams(console(Streams::out), console(Streams::err));
  if (!o.console_ranks.empty() && !o.console_ranks.contains(w.local_rank)) w.console = Streams::none;
  if (l.made_folder) w.files = Streams::none;  // it goes with this launch
  w.folder = l.folder / text("attempt_", round - 1) / std::to_string(w.local_rank);
  if (tee == Streams::none) return;
  w.prefix = o.prefix.empty() ? "[${role_name}${local_rank}]:" : o.prefix;
  replace_all(w.prefix, "${role_name}", o.role);
  replace_all(w.prefix, "${local_rank}", std::to_string(w.local_rank));
  replace_all(w.prefix, "${rank}", std::to_string(w.rank));
}

launch::Environment environment_of(const Launch& l, const launch::Begin& begin, int local_rank) {
  launch::Environment e = l.environment;
  const bool threads_set = e.contains("OMP_NUM_THREADS");
  launch::apply({.begin = begin,
                 .local_rank = local_rank,
                 .address = begin.master,
                 .port = begin.port > 0 ? begin.port : l.port,
                 .run_id = l.options.run_id,
                 .role = l.options.role},
                e);
  e.erase("WEFT_LISTENER");
  if (!l.program.trains && !l.elsewhere()) return e;
  if (!threads_set) e.erase("OMP_NUM_THREADS");
  if (!l.program.trains) {  // each process finds its own, see take_a_seat()
    launch::forget_seat(e);
    return e;
  }
  e["WEFT_SUPERVISED"] = "1";
  e["WEFT_ROUND"] = text(begin.round);
  if (l.ward)
    e["WEFT_WATCHER"] = watcher_of(l, begin.round);
  else if (l.watched())
    e["WEFT_PULSE"] = board_of(l, begin.round).string();
  if (l.lives) e["WEFT_LIFELINE"] = l.lives_name;
  if (std::string faults = launch::faults_of(l.options.faults, begin.round - 1); !faults.empty())
    e["WEFT_INJECT"] = std::move(faults);
  // What an outer launcher left says who the launcher is, not who its workers are: threads are told by words,
  // processes by mpirun or srun, and ours by torchrun's contract alone.
  l.by_tcp() ? launch::forget_launcher(e) : launch::forget_seat(e);
  if (l.by_tcp() && begin.first_rank + local_rank == 0) e["WEFT_LISTENER"] = text(l.door.get());
  return e;
}

/// A program of somebody's asks nobody for its rank: a weft beside it does, and becomes the program.
std::vector<std::string> seated_words(const Launch& l, const launch::Begin& begin) {
  launch::Placement p{.port = begin.port > 0 ? begin.port : l.port,
                      .restarts = begin.restarts,
                      .max_restarts = begin.max_restarts,
                      .run_id = l.options.run_id,
                      .role = l.options.role};
  for (const launch::Host& host : l.hosts) p.slots.push_back(int(host.slots.size()));
  if (!l.hosts.empty())
    p.address = l.hosts.front().name;
  else if (l.options.by != By::slurm)
    p.address = launch::first_host(launch::value_of(l.environment, "SLURM_JOB_NODELIST"));
  if (p.address.empty() && l.options.by != By::slurm) p.address = "127.0.0.1";
  std::vector<std::string> out{l.weft.string(), "launch", "--take-a-seat"};
  for (std::string& word : to_words(p)) out.push_back(std::move(word));
  out.insert(out.end(), l.program.words.begin(), l.program.words.end());
  return out;
}

/// One worker: the launcher, whose files a rank are its own work.
Worker started_elsewhere(const Launch& l, const launch::Begin& begin) {
  Worker w;
  route(l, w, begin.round);
  const bool logs = w.files != Streams::none;
  launch::Processes p{.count = l.world(),
                      .hostfile = {},
                      .folder = logs ? w.folder.parent_path() : std::filesystem::path(),
                      .console = w.console != Streams::none,
                      .prefixed = !w.prefix.empty(),
                      .as_root = geteuid() == 0,
                      .trains = l.program.trains};
  w.environment = environment_of(l, begin, 0);
  if (l.options.by == By::slurm) p.hosts = l.hosts;
  if (!l.hosts.empty() && l.options.by != By::slurm) {
    p.hostfile = l.folder / "hostfile";
    File(p.hostfile, Open::create).write(hostfile_of(l.hosts));
  }
  w.words = l.options.by == By::slurm ? launch::srun_words(p, l.options)
                                      : launch::mpirun_words(p, l.options, w.environment);
  const auto rest = l.program.trains ? program_words(l, begin) : seated_words(l, begin);
  w.words.insert(w.words.end(), rest.begin(), rest.end());
  w.prefix.clear();
  w.overheard = true;                // it says there who failed
  if (logs) w.files = Streams::err;  // the launcher's own words are worth keeping too
  w.folder = logs ? p.folder / "launcher" : w.folder;
  // Both end a job on SIGTERM before anybody has saved; SIGUSR2 they hand on.
  if (l.program.trains) w.save_signal = SIGUSR2;
  return w;
}

std::vector<Worker> workers(const Launch& l, const launch::Begin& begin) {
  if (l.watched() && !l.ward) static_cast<void>(PulseBoard::make(board_of(l, begin.round)));
  if (l.elsewhere()) return {started_elsewhere(l, begin)};
  std::vector<Worker> out;
  const int count = l.program.trains && !l.by_tcp() ? 1 : begin.slots;
  for (int i = 0; i < count; ++i) {
    Worker w{.words = program_words(l, begin),
             .environment = environment_of(l, begin, i),
             .folder = {},
             .prefix = {}};
    w.rank = begin.first_rank + i;
    w.local_rank = i;
    if (l.program.trains && !l.by_tcp()) w.ranks = l.options.per_node.value_or(l.program.ranks);
    for (std::string& word : w.words) word = with_local_rank(std::move(word), std::to_string(i));
    if (l.by_tcp() && w.rank == 0) w.keep = l.door.get();
    if (l.program.trains && l.options.per_node && !l.by_tcp())
      w.words.insert(w.words.end(), {"--ranks", std::to_string(*l.options.per_node)});
    route(l, w, begin.round);
    w.error_file = w.folder / "error.json";
    w.environment["TORCHELASTIC_ERROR_FILE"] = w.error_file.string();
    out.push_back(std::move(w));
  }
  return out;
}

void explain(By by, launch::Failure& failure, int seen) {
  const launch::Said said =
      by == By::slurm ? launch::read_srun(failure.last_words) : launch::read_mpirun(failure.last_words);
  failure.local_rank = -1;
  if (said.rank < 0) {  // its own words are all there is
    failure.launcher = by == By::slurm ? "srun" : "mpirun";
    return;
  }
  failure.last_words = said.words;
  failure.rank = said.rank;
  failure.host = said.host;
  failure.process = said.process;
  if (!said.end.good()) failure.end = said.end;
  if (failure.logs.empty()) return;
  const auto attempt = std::filesystem::path(failure.logs).parent_path();
  failure.logs = attempt.string();
  if (std::string own = launch::last_of_rank(attempt, seen >= 0 ? seen : said.rank); !own.empty())
    failure.last_words = std::move(own);
}

/// Without a hostfile mpirun stays here, unless it finds itself in an allocation.
launch::Seating seating_of(const Launch& l) {
  constexpr std::array allocations{"SLURM_JOB_ID", "PBS_NODEFILE", "LSB_JOBID", "PE_HOSTFILE"};
  constexpr std::array other_orders{"map-by", "rank-by", "bynode", "rankfile", "distribution"};
  const auto set = [&](const char* name) { return !launch::value_of(l.environment, name).empty(); };
  const auto asked = [&](const char* word) {
    return l.options.launcher_arguments.find(word) != std::string::npos;
  };
  launch::Seating out{.hosts = l.hosts,
                      .per_node = l.options.by == By::slurm ? l.options.per_node.value_or(0) : 0,
                      .in_order = std::ranges::none_of(other_orders, asked)};
  const bool here =
      l.options.by != By::slurm && (!l.on_other_machines() || std::ranges::none_of(allocations, set));
  if (out.hosts.empty() && here)
    out.hosts.push_back({launch::host_name(), std::vector<int>(std::size_t(l.world()))});
  return out;
}

}  // namespace

int port_of(const Launch& launch) { return launch.door ? port_of(launch.door) : launch.own_port.number; }

launch::Agent::Work work_of(const Launch& launch) {
  launch::Agent::Work work{
      .workers = [&launch](const launch::Begin& begin) { return workers(launch, begin); },
      .progress = [&launch] { return newest_step(launch.program); },
      .grace = launch.options.grace,
      .hang = launch.options.hang};
  if (launch.ward) {
    work.ward = launch.ward.get();
    work.ward_token = launch.ward_token;
  } else if (launch.watched())
    work.pulses = [&launch, round = 0, board = std::shared_ptr<PulseBoard>()](int now) mutable {
      if (now != round) board = std::make_shared<PulseBoard>(PulseBoard::open(board_of(launch, now)));
      round = now;
      return board->read();
    };
  if (launch.lives) work.lives = launch.lives.get();
  if (launch.program.trains) work.stopped_codes = {static_cast<int>(Exit::stopped)};
  if (launch.elsewhere())
    work.explain = [by = launch.options.by](launch::Failure& failure, int seen) {
      explain(by, failure, seen);
    };
  work.waits_for_others = launch.options.by == By::slurm;
  if (launch.elsewhere())
    work.where = [seating = seating_of(launch)](int rank, std::string_view host) {
      return launch::whereabouts_of(rank, host, seating);
    };
  return work;
}

std::string with_local_rank(std::string word, const std::string& rank) {
  replace_all(word, "${local_rank}", rank);
  return word;
}

int slots_of(const Launch& launch) { return launch.options.per_node.value_or(1); }

}  // namespace weft::cli
