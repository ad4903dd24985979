// A folder a run: run.yaml says what was started and how it ended, lock is held while it goes on, logs has
// what the launcher keeps, logs/ID_XXXXXX/attempt_N/RANK/{stdout,stderr}.log.
#include "weft/cli/job_here.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/base/tree.h"
#include "weft/cli/verb.h"
#include "weft/jobs/look.h"
#include "weft/jobs/status.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

constexpr int last_lines = 10;

/// A lock on all of a file, to write; it goes with whoever opened it.
struct flock whole_file() {
  struct flock out {};
  out.l_type = F_WRLCK;
  out.l_whence = SEEK_SET;
  return out;
}

std::string clock(std::time_t time) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  char out[32];
  std::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return out;
}

std::string changed_at(const fs::path& path) {
  std::error_code none;
  const auto since = fs::last_write_time(path, none).time_since_epoch() -
                     fs::file_time_type::clock::now().time_since_epoch();
  const auto then = std::chrono::system_clock::now() +
                    std::chrono::duration_cast<std::chrono::system_clock::duration>(since);
  return clock(std::chrono::system_clock::to_time_t(then));
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    if (entry.is_directory(none)) out.push_back(entry.path());
  return out;
}

int number_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const std::size_t mark = name.rfind('_');
  const std::string digits = mark == std::string::npos ? name : name.substr(mark + 1);
  int out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

/// Starts, the first one first; of the newest launch.
std::vector<fs::path> attempts_of(const RunHere& run) {
  std::vector<fs::path> launches = folders_in(run.folder / "logs");
  if (launches.empty()) return {};
  std::error_code none;
  const auto newest = std::ranges::max_element(
      launches, {}, [&](const fs::path& path) { return fs::last_write_time(path, none); });
  std::vector<fs::path> out = folders_in(*newest);
  std::ranges::sort(out, {}, number_of);
  return out;
}

std::string tail_of(const std::string& words, int lines) {
  if (lines <= 0) return lines < 0 ? words : "";
  std::size_t at = words.size();
  if (at > 0 && words.back() == '\n') --at;
  for (int i = 0; i < lines && at != std::string::npos; ++i)
    at = at == 0 ? std::string::npos : words.rfind('\n', at - 1);
  return at == std::string::npos ? words : words.substr(at + 1);
}

std::string content_of(const fs::path& path) {
  std::error_code none;
  return fs::is_regular_file(path, none) ? read_file(path) : "";
}

std::string reason_of(const RunHere& run) {
  if (run.ended.empty()) return "it was killed: nothing was written at its end";
  return run.status > 128 ? text("signal ", run.status - 128) : jobs::words_of_code(run.status);
}

jobs::State state_of(const RunHere& run) {
  if (run.goes_on) return jobs::State::running;
  return !run.ended.empty() && run.status == 0 ? jobs::State::succeeded : jobs::State::error;
}

/// "VmRSS:   1234 kB" of a process, in bytes.
std::int64_t memory_of(const fs::path& process) {
  std::ifstream in(process / "status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmRSS:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

/// Who started it, by /proc; 0 where it is gone.
int parent_of(const fs::path& process) {
  std::ifstream in(process / "status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + 5);
  return 0;
}

}  // namespace

fs::path usual_runs() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return fs::path(state) / "weft" / "jobs";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".local" / "state" / "weft" / "jobs";
  return {};
}

RunRecord::RunRecord(fs::path folder, std::vector<std::string> words)
    : folder_(std::move(folder)), words_(std::move(words)), started_(clock(std::time(nullptr))) {
  make_directories(folder_);
  const fs::path lock = folder_ / "lock";
  lock_ = Descriptor(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock_) fail_errno("open", lock, errno);
  struct flock whole = whole_file();
  if (::fcntl(lock_.get(), F_OFD_SETLK, &whole) != 0)
    fail(Kind::usage, "job run: ", folder_.filename().string(), " goes on here already: weft job status ",
         folder_.filename().string());
  write("");
}

void RunRecord::write(const std::string& rest) const {
  Tree out =
      Tree::map({{"words", Tree::words(words_)}, {"process", Tree::number(getpid())}, {"started", started_}});
  write_atomically(folder_ / "run.yaml", write_yaml(out) + rest);
}

void RunRecord::end(int status) {
  write(text("ended: \"", clock(std::time(nullptr)), "\"\nstatus: ", status, "\n"));
  lock_.reset();
}

std::optional<RunHere> run_here(const fs::path& runs, const std::string& job) {
  RunHere out{.folder = runs / job, .words = {}, .started = {}, .ended = {}};
  std::error_code none;
  if (runs.empty() || !fs::is_regular_file(out.folder / "run.yaml", none)) return std::nullopt;
  const Tree said = read_yaml(read_file(out.folder / "run.yaml"), (out.folder / "run.yaml").string());
  for (const Tree* word : jobs::items_at(said, "words")) out.words.push_back(word->text);
  out.started = jobs::word_at(said, "started");
  out.ended = jobs::word_at(said, "ended");
  out.process = int(jobs::number_at(said, "process"));
  out.status = int(jobs::number_at(said, "status"));
  // Who looks asks for the lock and never takes it: a run that starts meanwhile would be refused.
  const Descriptor lock(::open((out.folder / "lock").c_str(), O_RDWR | O_CLOEXEC));
  struct flock held = whole_file();
  out.goes_on = lock && ::fcntl(lock.get(), F_OFD_GETLK, &held) == 0 && held.l_type != F_UNLCK;
  return out;
}

std::string status_told(const RunHere& run, const std::string& job) {
  const jobs::State state = state_of(run);
  std::string out = text(job, ": ", jobs::name(state));
  if (state == jobs::State::error) out += text(": ", reason_of(run));
  out += text("\n  here, since ", run.started, run.ended.empty() ? "" : ", until ", run.ended, "\n");
  const std::string last = state == jobs::State::error ? logs_told(run, last_lines) : "";
  return last.empty() ? out : out + "its last words:\n" + last;
}

std::string events_told(const RunHere& run, const std::string& job) {
  std::string out =
      text(run.started, "  Normal  Started  ", job, "  weft launch ", join(run.words, " "), "\n");
  for (const fs::path& attempt : attempts_of(run))
    if (const int n = number_of(attempt); n > 0)
      out += text(changed_at(attempt), "  Warning  Restarted  ", job, "  start ", n + 1, "\n");
  if (run.ended.empty())
    return run.goes_on ? out : text(out, "?  Warning  Killed  ", job, "  ", reason_of(run), "\n");
  return text(out, run.ended, run.status == 0 ? "  Normal  Completed  " : "  Warning  Failed  ", job, "  ",
              jobs::words_of_code(run.status), "\n");
}

std::string logs_told(const RunHere& run, int tail) {
  const std::vector<fs::path> attempts = attempts_of(run);
  if (attempts.empty()) return "";
  std::vector<fs::path> ranks = folders_in(attempts.back());
  std::ranges::sort(ranks, {}, number_of);
  std::string out;
  for (const fs::path& rank : ranks)
    for (const char* file : {"stdout.log", "stderr.log"}) {
      std::istringstream lines(tail_of(content_of(rank / file), tail));
      for (std::string line; std::getline(lines, line);) out += text("[", number_of(rank), "] ", line, "\n");
    }
  return out;
}

std::string resources_told(const RunHere& run) {
  if (!run.goes_on) return "nothing: it has ended\n";
  std::map<int, int> parents;
  for (const fs::path& process : folders_in("/proc"))
    if (const int id = number_of(process); id > 0) parents[id] = parent_of(process);
  std::int64_t memory = 0;
  int processes = 0;
  for (const auto& [id, parent] : parents) {
    int at = id;
    for (int deep = 0; deep < 64 && at > 1 && at != run.process; ++deep)
      at = parents.contains(at) ? parents.at(at) : 0;
    if (at != run.process) continue;
    ++processes;
    memory += memory_of(fs::path("/proc") / std::to_string(id));
  }
  return text(processes, processes == 1 ? " process" : " processes", ", ", human_bytes(memory),
              " of memory\n");
}

}  // namespace weft::cli
