// From options to the command lines and variables of workers.
#include "weft/cli/launch_work.h"

#include <unistd.h>

#include <csignal>
#include <memory>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/pulse.h"
#include "weft/cli/verb.h"
#include "weft/comm/mpi.h"
#include "weft/launch/elsewhere.h"
#include "weft/launch/socket.h"

namespace weft::cli {
namespace {

using launch::By;
using launch::Streams;
using launch::Worker;

void replace_all(std::string& in, std::string_view what, const std::string& by) {
  for (auto at = in.find(what); at != std::string::npos; at = in.find(what, at + by.size()))
    in.replace(at, what.size(), by);
}

/// By another launcher, which then makes the processes.
bool elsewhere(const Launch& l) {
  const bool by_mpirun = l.program.trains && l.options.processes && l.options.nodes.most == 1 &&
                         !l.options.given.contains("launcher") && mpi_is_built();
  return l.options.by != By::agents || by_mpirun;
}

/// Ranks of our own as processes that we start, and that speak TCP.
bool by_tcp(const Launch& l) {
  const bool several =
      l.options.processes || l.options.nodes.most > 1 || l.options.given.contains("launcher");
  return l.program.trains && !elsewhere(l) && several;
}

/// Of a round: whoever was killed may still hold the one before.
std::filesystem::path board_of(const Launch& l, int round) { return l.folder / text("pulse_", round); }

/// Only ranks of this machine share its memory.
bool watched(const Launch& l) {
  return l.program.trains && l.options.watches && l.hosts.empty() &&
         (!elsewhere(l) || l.options.by == By::agents);
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
  w.folder = l.folder / text("attempt_", round - 1) / std::to_string(w.local_rank);
  if (tee == Streams::none) return;
  w.prefix = o.prefix.empty() ? "[${role_name}${local_rank}]:" : o.prefix;
  replace_all(w.prefix, "${role_name}", o.role);
  replace_all(w.prefix, "${local_rank}", std::to_string(w.local_rank));
  replace_all(w.prefix, "${rank}", std::to_string(w.rank));
}

/// What an outer launcher left says who the launcher is, not who its workers are.
void forget_seat(launch::Environment& e) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "SLURM_PROCID",
                           "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS"})
    e.erase(name);
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
  if (!l.program.trains && !elsewhere(l)) return e;
  if (!threads_set) e.erase("OMP_NUM_THREADS");
  e["WEFT_SUPERVISED"] = "1";
  e["WEFT_ROUND"] = text(begin.round);
  if (watched(l)) e["WEFT_PULSE"] = board_of(l, begin.round).string();
  if (std::string faults = launch::faults_of(l.options.faults, begin.round - 1); !faults.empty())
    e["WEFT_INJECT"] = std::move(faults);
  // Threads are told by words, and processes by their own launcher.
  if (!by_tcp(l)) forget_seat(e);
  if (by_tcp(l) && begin.first_rank + local_rank == 0) e["WEFT_LISTENER"] = text(l.door.get());
  return e;
}

int process_count(const Launch& l) {
  if (l.hosts.empty()) return l.options.per_node.value_or(1) * l.options.nodes.most;
  return std::accumulate(l.hosts.begin(), l.hosts.end(), 0,
                         [](int sum, const launch::Host& host) { return sum + int(host.slots.size()); });
}

/// One worker: the launcher, whose files a rank are its own work.
Worker started_elsewhere(const Launch& l, const launch::Begin& begin) {
  Worker w;
  route(l, w, begin.round);
  const bool logs = w.files != Streams::none;
  launch::Processes p{.count = process_count(l),
                      .hostfile = {},
                      .folder = logs ? w.folder.parent_path() : std::filesystem::path(),
                      .console = w.console != Streams::none,
                      .prefixed = !w.prefix.empty(),
                      .as_root = geteuid() == 0};
  w.environment = environment_of(l, begin, 0);
  if (!l.hosts.empty()) {
    p.hostfile = l.folder / "hostfile";
    File(p.hostfile, Open::create).write(hostfile_of(l.hosts));
  }
  w.words = l.options.by == By::slurm ? launch::srun_words(p, l.options)
                                      : launch::mpirun_words(p, l.options, w.environment);
  const auto rest = program_words(l, begin);
  w.words.insert(w.words.end(), rest.begin(), rest.end());
  w.prefix.clear();
  if (logs) w.files = Streams::err;  // the launcher's own words are worth keeping too
  w.folder = logs ? p.folder / "launcher" : w.folder;
  // Both end a job on SIGTERM before anybody has saved; SIGUSR2 they hand on.
  if (l.program.trains) w.save_signal = SIGUSR2;
  return w;
}

std::vector<Worker> workers(const Launch& l, const launch::Begin& begin) {
  if (watched(l)) static_cast<void>(PulseBoard::make(board_of(l, begin.round)));
  if (elsewhere(l)) return {started_elsewhere(l, begin)};
  std::vector<Worker> out;
  const int count = l.program.trains && !by_tcp(l) ? 1 : begin.slots;
  for (int i = 0; i < count; ++i) {
    Worker w{.words = program_words(l, begin),
             .environment = environment_of(l, begin, i),
             .folder = {},
             .prefix = {}};
    w.rank = begin.first_rank + i;
    w.local_rank = i;
    for (std::string& word : w.words) replace_all(word, "${local_rank}", std::to_string(i));
    if (by_tcp(l) && w.rank == 0) w.keep = l.door.get();
    if (l.program.trains && l.options.per_node && !by_tcp(l))
      w.words.insert(w.words.end(), {"--ranks", std::to_string(*l.options.per_node)});
    route(l, w, begin.round);
    w.error_file = w.folder / "error.json";
    w.environment["TORCHELASTIC_ERROR_FILE"] = w.error_file.string();
    out.push_back(std::move(w));
  }
  return out;
}

void explain(By by, launch::Failure& failure) {
  const launch::Said said =
      by == By::slurm ? launch::read_srun(failure.last_words) : launch::read_mpirun(failure.last_words);
  failure.last_words = said.words;
  if (said.rank < 0) return;
  failure.rank = said.rank;
  if (!said.end.good()) failure.end = said.end;
  if (failure.logs.empty()) return;
  const auto attempt = std::filesystem::path(failure.logs).parent_path();
  failure.logs = attempt.string();
  if (std::string own = launch::last_of_rank(attempt, said.rank); !own.empty())
    failure.last_words = std::move(own);
}

bool wants_files(const launch::Options& o) {
  return o.redirects.others != Streams::none || o.tee.others != Streams::none ||
         !o.redirects.by_rank.empty() || !o.tee.by_rank.empty();
}

std::filesystem::path fresh_folder(const launch::Options& o, bool lasting) {
  const std::filesystem::path root = lasting && !o.log_dir.empty() ? std::filesystem::path(o.log_dir)
                                                                   : std::filesystem::temp_directory_path();
  make_directories(root);
  std::string name = (root / text(lasting ? o.run_id : "weft_launch", "_XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) fail_errno("make a folder for logs in", root, errno);
  return name;
}

}  // namespace

Launch prepared(launch::Options options) {
  Launch out{
      .options = std::move(options), .environment = launch::environment_of_this_process(), .program = {}};
  launch::Options& o = out.options;
  // Who names a folder for logs wants logs.
  if (!o.log_dir.empty() && !wants_files(o)) o.tee.others = Streams::both;
  out.program = program_of(o, out.environment);
  if (!o.hostfile.empty()) out.hosts = launch::read_hosts(o.hostfile, read_file(o.hostfile));
  if (!o.include.empty()) out.hosts = included(std::move(out.hosts), o.include);
  if (!o.exclude.empty()) out.hosts = excluded(std::move(out.hosts), o.exclude);
  if (!out.hosts.empty() && o.given.contains("num-nodes")) {
    if (std::size_t(o.nodes.most) > out.hosts.size())
      fail(Kind::usage, "launch: --num-nodes ", o.nodes.most, ", and ", o.hostfile, " names ",
           out.hosts.size());
    out.hosts.resize(std::size_t(o.nodes.most));
  }
  if (o.per_node)
    for (launch::Host& host : out.hosts) host.slots.resize(std::size_t(*o.per_node));
  out.weft = std::filesystem::read_symlink("/proc/self/exe");
  out.made_folder = !wants_files(o);
  out.folder = fresh_folder(o, !out.made_folder);
  out.port = o.master.port;
  if (by_tcp(out)) out.door = launch::listen_anywhere();
  return out;
}

int port_of(const Launch& launch) {
  if (launch.door) return port_of(launch.door);
  const launch::Options& o = launch.options;
  // A program of yours listens itself: where several launches, or a coordinator, could have its usual port,
  // it gets one that was free just now.
  return o.standalone || o.nodes.most > 1 ? port_of(launch::listen_anywhere()) : 0;
}

launch::Agent::Work work_of(const Launch& launch) {
  launch::Agent::Work work{
      .workers = [&launch](const launch::Begin& begin) { return workers(launch, begin); },
      .progress = [&launch] { return newest_step(launch.program); },
      .grace = launch.options.grace,
      .hang = launch.options.hang};
  if (watched(launch))
    work.pulses = [&launch, round = 0, board = std::shared_ptr<PulseBoard>()](int now) mutable {
      if (now != round) board = std::make_shared<PulseBoard>(PulseBoard::open(board_of(launch, now)));
      round = now;
      return board->read();
    };
  if (launch.program.trains) work.stopped_codes = {static_cast<int>(Exit::stopped)};
  if (elsewhere(launch))
    work.explain = [by = launch.options.by](launch::Failure& failure) { explain(by, failure); };
  return work;
}

int slots_of(const Launch& launch) { return launch.options.per_node.value_or(1); }

}  // namespace weft::cli
