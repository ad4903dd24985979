// Reads what options name, and refuses what would be passed over.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <set>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/cli/launch_work.h"
#include "weft/comm/mpi.h"
#include "weft/launch/lifeline.h"
#include "weft/launch/socket.h"
#include "weft/launch/ward.h"

namespace weft::cli {
namespace {

using launch::By;
using launch::Streams;

constexpr const char* nowhere = "/dev/null";  // as a folder for logs, which torchrun takes too

bool wants_files(const launch::Options& o) {
  return o.redirects.others != Streams::none || o.tee.others != Streams::none ||
         !o.redirects.by_rank.empty() || !o.tee.by_rank.empty();
}

/// Its name begins with the job's, which is nobody's path.
std::filesystem::path fresh_folder(const launch::Options& o, bool lasting) {
  const std::filesystem::path root = lasting && !o.log_dir.empty() ? std::filesystem::path(o.log_dir)
                                                                   : std::filesystem::temp_directory_path();
  make_directories(root);
  std::string job = lasting ? o.run_id : "weft_launch";
  std::ranges::replace(job, '/', '_');
  std::string name = (root / (job + "_XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) fail_errno("make a folder for logs in", root, errno);
  return name;
}

/// A program of yours listens itself: where several launches, or a coordinator, could have its usual port, it
/// gets one of its own.
bool listens_itself(const Launch& l) {
  const launch::Options& o = l.options;
  const bool seated = !l.program.trains && l.elsewhere() && !o.given.contains("master-port");
  return o.standalone || o.nodes.most > 1 || seated;
}

std::string_view first_given(const launch::Options& o, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (o.given.contains(std::string(name))) return name;
  return "";
}

void take_slots(const launch::Options& o, std::vector<launch::Host>& hosts) {
  for (launch::Host& host : hosts) {
    if (std::size_t(*o.per_node) > host.slots.size())
      fail(Kind::usage, "launch: --", first_given(o, {"num-gpus", "num-accelerators", "nproc-per-node"}), " ",
           *o.per_node, ", and host ", host.name, " of ", o.hostfile, " has ", host.slots.size(), " slots");
    host.slots.resize(std::size_t(*o.per_node));
  }
}

std::vector<launch::Host> hosts_of(const launch::Options& o) {
  if (o.hostfile.empty()) return {};
  std::vector<launch::Host> hosts = launch::read_hosts(o.hostfile, read_file(o.hostfile));
  if (!o.include.empty()) hosts = included(std::move(hosts), o.include);
  if (!o.exclude.empty()) hosts = excluded(std::move(hosts), o.exclude);
  if (o.given.contains("num-nodes")) {
    if (std::size_t(o.nodes.most) > hosts.size())
      fail(Kind::usage, "launch: --num-nodes ", o.nodes.most, ", and ", o.hostfile, " names ", hosts.size());
    hosts.resize(std::size_t(o.nodes.most));
  }
  if (o.per_node) take_slots(o, hosts);
  if (o.by == By::slurm)
    for (const launch::Host& host : hosts)
      if (host.slots.size() != hosts[0].slots.size())
        fail(Kind::usage, "launch: srun starts as many tasks on every node, and ", o.hostfile, " gives ",
             hosts[0].name, " ", hosts[0].slots.size(), " and ", host.name, " ", host.slots.size(),
             "; take --launcher openmpi");
  return hosts;
}

/// Streams that are sent somewhere by rank, with what names them.
struct ByRank {
  const char* option;
  std::set<int> ranks;
};

std::array<ByRank, 3> by_rank(const launch::Options& o) {
  std::array<ByRank, 3> out{{{"--redirects", {}}, {"--tee", {}}, {"--local-ranks-filter", o.console_ranks}}};
  for (const auto& [rank, streams] : o.redirects.by_rank) out[0].ranks.insert(rank);
  for (const auto& [rank, streams] : o.tee.by_rank) out[1].ranks.insert(rank);
  return out;
}

/// mpirun, srun and a process of threads have the same streams for all ranks.
void must_be_heeded_by_rank(const Launch& l) {
  const int ranks = l.options.per_node.value_or(1);
  const char* by = l.options.by == By::slurm ? "srun" : "mpirun";
  for (const ByRank& one : by_rank(l.options)) {
    if (one.ranks.empty()) continue;
    if (l.elsewhere())
      fail(Kind::usage, "launch: ", one.option, " of single ranks: ", by,
           " treats all ranks' lines alike; give one number for all, or take --launcher weft");
    if (l.as_threads())
      fail(Kind::usage, "launch: ", one.option,
           " of single ranks: they are threads of one process, which has one stdout and one stderr; take "
           "--launcher weft");
    if (const int last = *one.ranks.rbegin(); last >= ranks)
      fail(Kind::usage, "launch: ", one.option, ": there is no local rank ", last, " among the ", ranks,
           " of a node");
  }
}

void must_be_heeded(const Launch& l) {
  const launch::Options& o = l.options;
  if (const auto name = first_given(o, {"inject", "hang-limit", "slow-window"});
      !l.program.trains && !name.empty())
    fail(Kind::usage, "launch: --", name, " is for weft's own training, and ", o.program,
         " is another program");
  for (const launch::Fault& fault : o.faults)
    if (fault.rank >= l.world())
      fail(Kind::usage, "launch: --inject: there is no rank ", fault.rank, " among the ", l.world(),
           " of this job");
  must_be_heeded_by_rank(l);
}

}  // namespace

bool Launch::elsewhere() const {
  const bool by_mpirun = program.trains && options.processes && options.nodes.most == 1 &&
                         !options.given.contains("launcher") && mpi_is_built();
  return options.by != By::agents || by_mpirun;
}

bool Launch::by_tcp() const {
  const bool several = options.processes || options.nodes.most > 1 || options.given.contains("launcher");
  return program.trains && !elsewhere() && several;
}

bool Launch::as_threads() const { return program.trains && !elsewhere() && !by_tcp(); }

bool Launch::on_other_machines() const { return elsewhere() && options.by != By::agents; }

int Launch::world() const {
  if (!hosts.empty())
    return std::accumulate(hosts.begin(), hosts.end(), 0,
                           [](int sum, const launch::Host& host) { return sum + int(host.slots.size()); });
  return options.per_node.value_or(as_threads() ? program.ranks : 1) * options.nodes.most;
}

Launch prepared(launch::Options options) {
  Launch out{
      .options = std::move(options), .environment = launch::environment_of_this_process(), .program = {}};
  launch::Options& o = out.options;
  const bool kept = o.log_dir != nowhere;
  // Who names a folder for logs wants logs.
  if (!o.log_dir.empty() && kept && !wants_files(o)) o.tee.others = Streams::both;
  out.program = program_of(o, out.environment);
  out.hosts = hosts_of(o);
  must_be_heeded(out);
  out.weft = std::filesystem::read_symlink("/proc/self/exe");
  out.made_folder = !wants_files(o) || !kept;
  out.folder = fresh_folder(o, !out.made_folder);
  out.port = o.master.port;
  if (out.by_tcp()) out.door = launch::listen_anywhere();
  if (!out.door && listens_itself(out)) out.own_port = launch::reserve_port(launch::ports_left_alone());
  if (out.watched() && out.on_other_machines()) {
    out.ward = launch::listen_anywhere();
    out.ward_token = launch::new_token();
  }
  if (out.program.trains && out.elsewhere() && !out.on_other_machines()) {
    out.lives_name = text("weft launch, ranks of ", launch::new_token());
    out.lives = launch::listen_for_lives(out.lives_name);
  }
  return out;
}

}  // namespace weft::cli
