#include "weft/launch/options_table.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::launch {
namespace {

using Word = std::string_view;

void set_per_node(Options& o, Word who, Word word) {
  if (word == "gpu" || word == "xpu")
    fail(Kind::usage, who, ": this build sees no ", word, "; write a number, cpu or auto");
  if (word == "auto" || word == "cpu")
    o.per_node = std::max(1, int(std::thread::hardware_concurrency()));
  else
    o.per_node = whole_number(who, word, 1);
}

void set_signals(Options& o, Word who, Word words) {
  struct Named {
    Word name;
    int number;
  };
  constexpr std::array known{Named{"SIGTERM", SIGTERM}, Named{"SIGINT", SIGINT},   Named{"SIGHUP", SIGHUP},
                             Named{"SIGQUIT", SIGQUIT}, Named{"SIGUSR1", SIGUSR1}, Named{"SIGUSR2", SIGUSR2}};
  o.signals.clear();
  for (const Word word : split(words, ',')) {
    const auto* found =
        std::find_if(known.begin(), known.end(), [&](const Named& n) { return n.name == trim(word); });
    if (found == known.end())
      fail(Kind::usage, who, ": '", word, "' is not SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 or SIGUSR2");
    o.signals.push_back(found->number);
  }
}

void set_patience(Options& o, Word who, Word words) {
  for (const std::string& name : read_patience(who, words, o.patience))
    o.notices.push_back(text("no effect here: ", who, " ", name, " (weft's agents ask for no such thing)"));
}

void set_backend(Options&, Word who, Word word) {
  if (word == "static" || word == "c10d") return;
  if (word == "etcd" || word == "etcd-v2")
    fail(Kind::usage, who, ": weft's agents meet at the first node and need no ", word, "; write c10d");
  fail(Kind::usage, who, ": '", word, "' is not static or c10d");
}

void set_places(Options& o, Word who, Word words) {
  o.places = read_places(who, words, 29400);
  o.master = o.places.front();
}

void set_console_ranks(Options& o, Word who, Word words) {
  o.console_ranks.clear();
  for (const Word word : split(words, ',')) o.console_ranks.insert(whole_number(who, trim(word), 0));
}

double seconds_of(Word who, Word word) {
  Patience seconds;
  static_cast<void>(read_patience(who, text("join_timeout=", word), seconds));
  return seconds.join;
}

void set_hang_limit(Options& o, Word who, Word word) {
  o.watches = word != "off";
  o.hang.limit = word == "off" || word == "auto" ? 0 : std::max(0.1, seconds_of(who, word));
}

void set_launcher(Options& o, Word who, Word word) {
  const std::string name = lower(word);
  o.by = By::agents;
  if (name == "weft") return;
  if (name == "openmpi")
    o.by = By::openmpi;
  else if (name == "slurm")
    o.by = By::slurm;
  else if (name == "ssh" || name == "pdsh")
    o.by = By::ssh;
  else
    fail(Kind::usage, who, ": '", word, "' is not weft, openmpi, slurm or ssh");
}

void nothing(Options&, Word, Word) {}

constexpr Word starting = "Ranks and nodes", meeting = "Meeting", faults = "Faults", logs = "Logs",
               hosts = "Hosts";
constexpr Word events = "a worker's end is an event here, nothing polls";
constexpr Word ours = "weft's launcher is no Python";

// clang-format off
constexpr std::array table{
    Row{{"nnodes", "", "N|MIN:MAX", "nodes; with MIN:MAX the job goes on while MIN are there", starting}, true,
        [](Options& o, Word who, Word w) { o.nodes = read_nodes(who, w); }},
    Row{{"nproc-per-node", "", "N|auto", "workers a node; auto: one a processor", starting}, true, set_per_node},
    Row{{"standalone", "", "", "one node, whatever else is set", starting}, true,
        [](Options& o, Word, Word) { o.standalone = true; }},
    Row{{"processes", "", "", "weft's ranks as processes over MPI, not as threads", starting}, false,
        [](Options& o, Word, Word) { o.processes = true; }},
    Row{{"no-python", "", "", "a program that ends in .py is run as it is", starting}, true,
        [](Options& o, Word, Word) { o.python = false; }},
    Row{{"role", "", "NAME", "ROLE_NAME of the workers (default default)", starting}, true,
        [](Options& o, Word, Word w) { o.role = w; }},
    Row{{"node-rank", "", "N", "this node's place; without it the rendezvous gives one", meeting}, true,
        [](Options& o, Word who, Word w) { o.node_rank = whole_number(who, w, -1); }},
    Row{{"master-addr", "", "HOST", "the node where agents meet (default 127.0.0.1)", meeting}, true,
        [](Options& o, Word who, Word w) { o.master.host = read_host(who, w); }},
    Row{{"master-port", "", "N", "its port (default 29500)", meeting}, true,
        [](Options& o, Word who, Word w) { o.master.port = read_endpoint(who, text(":", w), 0).port; }},
    Row{{"rdzv-backend", "", "static|c10d", "both mean the same here", meeting}, true, set_backend},
    Row{{"rdzv-endpoint", "", "HOST[:PORT],…", "master address and port in one; of three places or more, any may be lost while most are left", meeting}, true, set_places},
    Row{{"rdzv-id", "", "NAME", "agents of another name are turned away", meeting}, true,
        [](Options& o, Word, Word w) { o.run_id = w; }},
    Row{{"rdzv-conf", "", "NAME=VALUE,…", "join_timeout 600, last_call_timeout 30, keep_alive_interval 3, keep_alive_max_attempt 4", meeting}, true,
        set_patience},
    Row{{"local-addr", "", "HOST", "the address that this node tells others", meeting}, true,
        [](Options& o, Word who, Word w) { o.local_address = w.empty() ? "" : read_host(who, w); }},
    Row{{"max-restarts", "", "N", "starts again after a failure, from the newest checkpoint (default 0)", faults}, true,
        [](Options& o, Word who, Word w) { o.max_restarts = whole_number(who, w, 0); }},
    Row{{"shutdown-timeout", "", "SECONDS", "from a signal to SIGKILL (default 25)", faults}, true,
        [](Options& o, Word who, Word w) { o.grace = seconds_of(who, w); }},
    Row{{"hang-limit", "", "SECONDS|auto|off", "no sign of life of any rank for so long is a hang: report and restart (default auto: 3 times the longest step, 15 s at least)", faults}, false, set_hang_limit},
    Row{{"slow-window", "", "SECONDS", "ranks' work is compared over so long, and 3 steps at least; a fifth more, twice in a row, is told (default 60)", faults}, false,
        [](Options& o, Word who, Word w) { o.hang.slow_window = seconds_of(who, w); }},
    Row{{"inject", "", "KIND@step=N,rank=R;…", "makes faults: kill, hang, slow (ms=N), flip; attempt=N for a later start", faults}, false,
        [](Options& o, Word who, Word w) { o.faults = read_faults(who, w); }},
    Row{{"signals-to-handle", "", "NAMES", "signals that workers get and that end the job (default SIGTERM,SIGINT,SIGHUP,SIGQUIT)", faults}, true, set_signals},
    Row{{"log-dir", "", "DIR", "a folder an attempt and rank, none is ever overwritten", logs}, true,
        [](Options& o, Word, Word w) { o.log_dir = w; }},
    Row{{"redirects", "r", "0|1|2|3", "stdout (1), stderr (2) or both (3) to files; or RANK:N,…", logs}, true,
        [](Options& o, Word who, Word w) { o.redirects = read_routing(who, w); }},
    Row{{"tee", "t", "0|1|2|3", "the same, to files and the console", logs}, true,
        [](Options& o, Word who, Word w) { o.tee = read_routing(who, w); }},
    Row{{"local-ranks-filter", "", "RANKS", "which of them reach the console (default all)", logs}, true, set_console_ranks},
    Row{{"log-line-prefix-template", "", "TEXT", "before a line that is teed: ${role_name}, ${local_rank}, ${rank}", logs}, true,
        [](Options& o, Word, Word w) { o.prefix = w; }},
    Row{{"enable-each-rank-log", "", "DIR", "DeepSpeed's: --log-dir DIR --redirects 3", logs}, false,
        [](Options& o, Word, Word w) { o.log_dir = w; o.redirects.others = Streams::both; }},
    Row{{"hostfile", "H", "FILE", "lines HOST slots=N or HOST:N; starts on all of them from here", hosts}, false,
        [](Options& o, Word, Word w) { o.hostfile = w; }},
    Row{{"include", "i", "HOST[:SLOTS]@…", "only these hosts and slots", hosts}, false,
        [](Options& o, Word, Word w) { o.include = w; }},
    Row{{"exclude", "e", "HOST[:SLOTS]@…", "all but these", hosts}, false,
        [](Options& o, Word, Word w) { o.exclude = w; }},
    Row{{"num-nodes", "", "N", "DeepSpeed's: the first N hosts, or --nnodes N", hosts}, false,
        [](Options& o, Word who, Word w) { o.nodes = read_nodes(who, w); }},
    Row{{"num-gpus", "", "N", "DeepSpeed's: --nproc-per-node N", hosts}, false, set_per_node},
    Row{{"num-accelerators", "", "N", "the same", hosts}, false, set_per_node},
    Row{{"launcher", "", "weft|openmpi|slurm|ssh", "who starts processes: weft's own agents, mpirun (over Slurm where there is an allocation), srun, mpirun over ssh", hosts}, false, set_launcher},
    Row{{"launcher-args", "", "WORDS", "added to mpirun's or srun's", hosts}, false,
        [](Options& o, Word, Word w) { o.launcher_arguments = w; }},
    Row{{"ssh-port", "", "N", "for hosts reached by ssh", hosts}, false,
        [](Options& o, Word who, Word w) { o.ssh_port = whole_number(who, w, 1); }},
    Row{{"monitor-interval", "", "SECONDS", "", ""}, true, nothing, events},
    Row{{"start-method", "", "NAME", "", ""}, true, nothing, "workers are programs, not functions"},
    Row{{"event-log-handler", "", "NAME", "", ""}, true, nothing, ours},
    Row{{"no-local-rank", "", "", "", ""}, false, nothing, "weft adds no --local_rank to a program's words"},
    Row{{"no-ssh-check", "", "", "", ""}, false, nothing, "no host is probed"},
    Row{{"no-ssh", "", "", "", ""}, false, nothing, "an agent a node needs none"},
    Row{{"force-multi", "", "", "", ""}, false, nothing, "one node is started like many"},
    Row{{"log-level", "", "NAME", "", ""}, false, nothing, "the launcher says little"},
    Row{{"quiet", "q", "", "", ""}, false, nothing, "the launcher says little"},
    Row{{"module", "m", "", "", ""}, true, nothing, "", "weft starts programs; write python3 -m NAME behind --no-python"},
    Row{{"run-path", "", "", "", ""}, true, nothing, "", ours},
    Row{{"logs-specs", "", "NAME", "", ""}, true, nothing, "", "logs cannot be another program's; see --log-dir"},
    Row{{"duplicate-stdout-filters", "", "WORDS", "", ""}, true, nothing, "", "lines are not copied by words; grep the logs"},
    Row{{"duplicate-stderr-filters", "", "WORDS", "", ""}, true, nothing, "", "lines are not copied by words; grep the logs"},
    Row{{"numa-binding", "", "NAME", "", ""}, true, nothing, "", "weft does not bind to memory nodes yet; use numactl"},
    Row{{"virtual-local-rank", "", "", "", ""}, true, nothing, "", "weft hides no devices"},
    Row{{"venv-script", "", "FILE", "", ""}, false, nothing, "", "source it before weft launch"},
    Row{{"save-pid", "", "", "", ""}, false, nothing, "", "no pid file is written"},
    Row{{"bind-cores-to-rank", "", "", "", ""}, false, nothing, "", "mpirun binds: --launcher_args '--bind-to core'"},
    Row{{"bind-core-list", "", "LIST", "", ""}, false, nothing, "", "mpirun binds: --launcher_args '--cpu-set LIST'"},
    Row{{"autotuning", "", "NAME", "", ""}, false, nothing, "", "weft has no tuner"},
    Row{{"elastic-training", "", "", "", ""}, false, nothing, "", "write --nnodes MIN:MAX"},
    Row{{"min-elastic-nodes", "", "N", "", ""}, false, nothing, "", "write --nnodes MIN:MAX"},
    Row{{"max-elastic-nodes", "", "N", "", ""}, false, nothing, "", "write --nnodes MIN:MAX"},
};
// clang-format on

}  // namespace

std::span<const Row> option_table() { return table; }

std::vector<OptionRow> option_rows() {
  std::vector<OptionRow> out;
  for (const Row& row : table)
    if (!row.about.help.empty()) out.push_back(row.about);
  return out;
}

}  // namespace weft::launch
