// Builds command lines for launchers that exist, and reads Open MPI's banner.
#include "weft/launch/elsewhere.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"

namespace weft::launch {
namespace {

constexpr std::string_view rule = "----------------------------------------------------------------";

void add_words(std::vector<std::string>& to, std::string_view words) {
  for (const std::string_view word : split(words, ' '))
    if (!word.empty()) to.emplace_back(word);
}

bool travels(std::string_view name) {
  constexpr std::array beginnings{"NCCL", "PYTHON", "UCX", "MLFLOW", "OMP_", "WEFT_", "TORCHELASTIC_"};
  if (name == "PATH" || name == "LD_LIBRARY_PATH") return true;
  for (const char* beginning : beginnings)
    if (name.starts_with(beginning)) return true;
  return false;
}

/// The number behind `mark`, if it is there.
int number_behind(std::string_view said, std::string_view mark) {
  const auto at = said.find(mark);
  if (at == std::string_view::npos) return -1;
  int out = -1;
  said = trim(said.substr(at + mark.size()));
  std::from_chars(said.data(), said.data() + said.size(), out);
  return out;
}

/// The word behind `mark`, if it is there.
std::string_view word_behind(std::string_view said, std::string_view mark) {
  const auto at = said.find(mark);
  if (at == std::string_view::npos) return "";
  said = said.substr(at + mark.size());
  return said.substr(0, said.find_first_of(" \n"));
}

/// Of a line of srun's.
std::string_view host_of_task(std::string_view line) {
  const std::string_view before = line.substr(0, line.find(": task"));
  return before.substr(before.rfind(' ') + 1);
}

bool says_mpirun(std::string_view box) {
  constexpr std::array signs{
      "MPI_ABORT was invoked", "mpirun ", "Primary job ", "ORTE ", "orted ", "Open MPI "};
  return std::ranges::any_of(signs, [&](const char* sign) { return box.find(sign) != box.npos; });
}

/// "[host:123] 3 more processes have sent help message help-mpi-api.txt / mpi-abort", and what follows it.
bool counts_boxes(std::string_view line) {
  return line.starts_with('[') && (line.find(" sent help message ") != line.npos ||
                                   line.find("orte_base_help_aggregate") != line.npos);
}

/// What ranks said, before, between and behind mpirun's own words, which stand in boxes between two rules. A
/// rule of a rank's own may stand anywhere.
std::string without_boxes(std::string_view said) {
  std::string out, box;
  for (const std::string_view line : split(said, '\n')) {
    const bool is_rule = line.starts_with(rule), ends = is_rule && says_mpirun(box);
    if (is_rule && !ends) {
      out += box;
      box.clear();
    }
    if (is_rule || !box.empty())
      box += text(line, "\n");
    else if (!counts_boxes(line))
      out += text(line, "\n");
    if (ends) box.clear();
  }
  return std::string(trim(says_mpirun(box) ? out : out + box));
}

}  // namespace

std::vector<std::string> mpirun_words(const Processes& p, const Options& options,
                                      const Environment& environment) {
  std::vector<std::string> out{"mpirun", "-n", std::to_string(p.count), "--oversubscribe"};
  if (p.as_root) out.emplace_back("--allow-run-as-root");
  // It sleeps so long between the signals by which it ends a rank's peers, and says only then who failed.
  if (p.trains) out.insert(out.end(), {"--mca", "odls_base_sigkill_timeout", "0"});
  if (options.launcher_arguments.empty()) out.insert(out.end(), {"--bind-to", "none"});
  add_words(out, options.launcher_arguments);
  if (!p.hostfile.empty()) {
    out.insert(out.end(), {"--hostfile", p.hostfile.string()});
    for (const auto& [name, value] : environment)
      if (travels(name)) out.insert(out.end(), {"-x", name});
  }
  if (options.by == By::ssh) out.insert(out.end(), {"--mca", "plm", "rsh"});
  if (options.ssh_port > 0) out.insert(out.end(), {"--mca", "plm_rsh_args", text("-p ", options.ssh_port)});
  if (!p.folder.empty())
    out.insert(out.end(),
               {"--output-filename", text(p.folder.string(), ":nojobid", p.console ? "" : ",nocopy")});
  if (p.prefixed) out.emplace_back("--tag-output");
  return out;
}

std::vector<std::string> srun_words(const Processes& p, const Options& options) {
  std::vector<std::string> out{"srun", "--ntasks", std::to_string(p.count), "--kill-on-bad-exit=1"};
  if (options.launcher_arguments.find("--mpi") == std::string::npos) out.emplace_back("--mpi=pmix");
  if (!p.hosts.empty()) {
    std::vector<std::string> names;
    for (const Host& host : p.hosts) names.push_back(host.name);
    out.insert(out.end(), {text("--nodes=", names.size()), text("--nodelist=", join(names, ",")),
                           text("--ntasks-per-node=", p.hosts[0].slots.size())});
  } else if (options.nodes.most > 1 || options.given.contains("nnodes") ||
             options.given.contains("num-nodes"))
    out.push_back(text("--nodes=", options.nodes.most));
  if (options.per_node && p.hosts.empty()) out.push_back(text("--ntasks-per-node=", *options.per_node));
  if (!p.folder.empty()) {
    out.push_back(text("--output=", (p.folder / "rank.%t.stdout").string()));
    out.push_back(text("--error=", (p.folder / "rank.%t.stderr").string()));
  }
  if (p.prefixed) out.emplace_back("--label");
  add_words(out, options.launcher_arguments);
  return out;
}

// A rank that a signal ended is what made its peers give up, whoever spoke first.
Said read_mpirun(std::string_view said) {
  Said out{.rank = number_behind(said, "noticed that process rank "), .end = {}, .words = {}, .host = {}};
  out.end.signal = std::max(0, number_behind(said, "exited on signal "));
  // "process rank 12 with PID 0 on node vm exited on signal 9 (Killed)"; 0 is what it says of others'
  // processes
  if (out.rank >= 0) {
    const std::string_view loss = said.substr(said.find("noticed that process rank "));
    out.process = std::max(0, number_behind(loss, " with PID "));
    out.host = word_behind(loss, " on node ");
  }
  if (out.rank < 0 && (out.rank = number_behind(said, "MPI_ABORT was invoked on rank ")) >= 0)
    out.end.code = std::max(0, number_behind(said, "with errorcode "));
  // "Process name: [[15012,1],1]"
  const auto name = said.find("Process name: [[");
  if (out.rank < 0 && name != std::string_view::npos) {
    out.rank = number_behind(said.substr(name), "],");
    out.end.code = std::max(0, number_behind(said.substr(name), "Exit code:"));
  }
  out.words = without_boxes(said);
  return out;
}

// "srun: error: alpha: task 0: Exited with exit code 2", "…: tasks 0-3: Killed". The first line is the first
// end.
Said read_srun(std::string_view said) {
  Said out{.rank = -1, .end = {}, .words = {}, .host = {}};
  for (const std::string_view line : split(said, '\n')) {
    const bool srun = line.find("srun: ") != std::string_view::npos;
    if (!srun) out.words += text(line, "\n");
    if (!srun || out.rank >= 0) continue;
    out.rank = std::max(number_behind(line, ": task "), number_behind(line, ": tasks "));
    if (out.rank >= 0) out.host = host_of_task(line);
    out.end.code = std::max(0, number_behind(line, "Exited with exit code "));
    for (const int number : {SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTERM})
      if (out.end.code == 0 && line.find(text(": ", strsignal(number))) != std::string_view::npos)
        out.end.signal = number;
  }
  out.words = trim(out.words);
  return out;
}

std::string last_of_rank(const std::filesystem::path& attempt, int rank) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(attempt, none)) {
    // mpirun writes rank.07/stderr where there are ten or more, srun rank.7.stderr.
    const std::string name = entry.path().filename().string();
    if (number_behind(name, "rank.") != rank) continue;
    const auto file = entry.is_directory(none) ? entry.path() / "stderr" : entry.path();
    if (file.string().ends_with("stderr") && std::filesystem::is_regular_file(file, none)) {
      const std::string all = read_file(file);
      return all.substr(all.size() > 4096 ? all.size() - 4096 : 0);
    }
  }
  return "";
}

}  // namespace weft::launch
