// The file's text is rewritten in place, never renamed, as flock belongs to the file and not to its name.
#include "weft/checkpoint/lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <random>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::checkpoint {
namespace {

constexpr std::string_view first_line = "weft lock 1";
constexpr std::size_t most_letters = 100;  // of a word in the file
constexpr std::size_t number_width = 19;

// Words come from the machine: what would break a line is left out.
std::string one_word(std::string_view from) {
  std::string out;
  for (const char c : from.substr(0, most_letters)) out += c > ' ' && c <= '~' ? c : '_';
  return out.empty() ? "_" : out;
}

std::string_view after(std::string_view line, std::string_view name) {
  if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') return {};
  return line.substr(name.size() + 1);
}

std::optional<std::int64_t> number_of(std::string_view word) {
  std::int64_t out = -1;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), out);
  if (word.empty() || read.ec != std::errc() || read.ptr != word.data() + word.size() || out < 0)
    return std::nullopt;
  return out;
}

std::string padded(std::int64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(number_width - std::min(number_width, digits.size()), '0') + digits;
}

std::string first_line_of(const char* file) {
  try {
    const std::string all = read_file(file);
    return all.substr(0, all.find('\n'));
  } catch (const Error&) {
    return {};  // not every kernel says it
  }
}

std::string name_of_machine() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::string words_for(const LockHolder& holder) {
  std::string since = holder.since;
  std::replace(since.begin(), since.end(), '_', ' ');
  return text("process ", holder.process, " on ", holder.machine, ", since ", since);
}

std::string words_for(std::string_view bytes) {
  const auto holder = lock_holder(bytes);
  return holder ? words_for(*holder) : "a process that has not written its name yet";
}

bool same_machine(const LockHolder& a, const LockHolder& b) {
  return a.machine == b.machine && a.boot == b.boot;
}

// What a file system says that has no such locks.
bool knows_no_locks(int error) { return error != EWOULDBLOCK && error != EINTR; }

}  // namespace

LockHolder this_run() {
  LockHolder out{.machine = one_word(name_of_machine()),
                 .boot = one_word(first_line_of("/proc/sys/kernel/random/boot_id")),
                 .process = ::getpid(),
                 .since = {},
                 .run = {}};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char since[64];
  out.since.assign(since, std::strftime(since, sizeof since, "%Y-%m-%d_%H:%M:%S_UTC", &parts));
  std::random_device entropy;
  char run[40];
  std::snprintf(run, sizeof run, "%08x%08x%08x", entropy(), entropy(), entropy());
  out.run = run;
  return out;
}

std::string lock_text(const LockHolder& holder) {
  std::string out = text(first_line, "\nmachine ", one_word(holder.machine), "\nboot ", one_word(holder.boot),
                         "\nprocess ", holder.process, "\nsince ", one_word(holder.since), "\nrun ",
                         one_word(holder.run), "\nbeat ", padded(holder.beat), "\n");
  out.resize(lock_bytes, '\n');
  return out;
}

std::optional<LockHolder> lock_holder(std::string_view from) {
  const auto lines = split(from, '\n');
  if (lines.size() < 7 || lines[0] != first_line) return std::nullopt;
  const auto process = number_of(after(lines[3], "process"));
  const auto beat = number_of(after(lines[6], "beat"));
  LockHolder out{.machine = std::string(after(lines[1], "machine")),
                 .boot = std::string(after(lines[2], "boot")),
                 .since = std::string(after(lines[4], "since")),
                 .run = std::string(after(lines[5], "run"))};
  if (!process || !beat || out.machine.empty() || out.boot.empty() || out.since.empty() || out.run.empty())
    return std::nullopt;
  out.process = *process;
  out.beat = *beat;
  return out;
}

DirectoryLock::DirectoryLock(std::filesystem::path directory, LockHolder me, const Log& log,
                             const FileSystem& files, LockPace pace)
    : directory_(std::move(directory)),
      path_(directory_ / lock_name),
      me_(std::move(me)),
      log_(log),
      files_(files),
      pace_(std::move(pace)),
      text_(lock_text(me_)),
      number_at_(text_.rfind("beat ") + 5) {
  if (!pace_.wait) pace_.wait = [beat = pace_.beat] { std::this_thread::sleep_for(beat); };
  take();
}

DirectoryLock::~DirectoryLock() {
  if (heart_.joinable()) {
    heart_.request_stop();
    heart_.join();
  }
  // Removed while it is locked, so that nobody takes a file that has no name any more for the lock.
  if (fd_ >= 0 && mine(look())) files_.remove(path_.c_str());
  let_go();
}

void DirectoryLock::let_go() {
  if (fd_ >= 0) files_.close(std::exchange(fd_, -1));
}

void DirectoryLock::tell_once(const std::string& sentence) {
  if (!std::exchange(told_, true)) log_.warning(sentence);
}

void DirectoryLock::take() {
  try {
    // A file that is given back just now has no name any more; the next one has.
    for (int i = 0; i < 100; ++i)
      if (take_once()) return;
    refuse(look(), Life::beats);
  } catch (const Error& error) {
    let_go();
    if (error.kind() == Kind::usage) throw;
    tell_once(
        text(directory_.string(),
             " cannot be locked, and a second run that saves there would not be noticed: ", error.what()));
  }
}

bool DirectoryLock::take_once() {
  let_go();
  fd_ = files_.open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  const int why_not = errno;
  const bool anothers = fd_ < 0 && why_not == EACCES;
  if (anothers) fd_ = files_.open(path_.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (fd_ < 0) fail_errno("create", path_, why_not);
  const bool locked = files_.lock(fd_) == 0;
  const bool silent_on_locks = !locked && knows_no_locks(errno);
  const LockContent seen = look();
  if (!locked && !silent_on_locks) {
    const auto holder = lock_holder(seen.text());
    const Life life = holder && !same_machine(*holder, me_) ? watch(seen) : Life::beats;
    if (life == Life::none) return false;
    refuse(seen, life);
  }
  if (!files_.is_at(fd_, path_.c_str())) return false;
  if (anothers) {  // another person's run, which is gone: its file cannot be written, but the directory can
    if (files_.remove(path_.c_str()) < 0) fail_errno("remove", path_, errno);
    return false;
  }
  const auto before = lock_holder(seen.text());
  if (before && (silent_on_locks || !same_machine(*before, me_))) {
    log_.info(text(directory_.string(), " is locked by ", words_for(*before), ": watching it for ",
                   human_duration(double(pace_.beat.count()) * pace_.patience / 1000)));
    const Life life = watch(seen);
    if (life == Life::none) return false;
    if (life == Life::beats) refuse(seen, life);
    log_.warning(text(directory_.string(),
                      ": the run that locked it is gone, and this one takes it: ", words_for(*before)));
  }
  write_mine();
  return true;
}

DirectoryLock::Life DirectoryLock::watch(const LockContent& first) const {
  for (int i = 0; i < pace_.patience; ++i) {
    pace_.wait();
    const LockContent now = look();
    if (!now.there) return Life::none;
    if (now.text() != first.text()) return Life::beats;
  }
  return Life::silent;
}

// Opened anew each time: network file systems look at the server then.
DirectoryLock::LockContent DirectoryLock::look() const {
  LockContent out;
  const int fd = files_.open(path_.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) {
    out.there = errno != ENOENT;
    return out;
  }
  out.there = true;
  const ssize_t count = files_.read(fd, out.bytes.data(), out.bytes.size(), 0);
  out.size = count > 0 ? std::size_t(count) : 0;
  files_.close(fd);
  return out;
}

void DirectoryLock::write_mine() {
  if (files_.write(fd_, text_.data(), text_.size(), 0) != ssize_t(text_.size()))
    fail_errno("write", path_, errno);
  if (files_.sync(fd_) < 0) fail_errno("sync", path_, errno);
}

// All but the number; a file that cannot be read now does not speak against it.
bool DirectoryLock::mine(const LockContent& seen) const {
  const bool says_so = seen.text().substr(0, number_at_) == std::string_view(text_).substr(0, number_at_);
  return seen.there && (seen.size == 0 || says_so) && files_.is_at(fd_, path_.c_str());
}

void DirectoryLock::refuse(const LockContent& seen, Life life) const {
  const std::string advice = life == Life::silent
                                 ? text("it has shown no life for ",
                                        human_duration(double(pace_.beat.count()) * pace_.patience / 1000),
                                        ": if its machine is gone, remove ", path_.string())
                                 : std::string("wait until it has ended, or save elsewhere");
  fail(Kind::usage, directory_.string(), ": another run saves there: ", words_for(seen.text()), "; ", advice);
}

void DirectoryLock::keep_beating() {
  heart_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(mutex_);
        stopping_.wait_for(lock, stop, pace_.beat, [] { return false; });
      }
      if (!stop.stop_requested()) beat();
    }
  });
}

void DirectoryLock::beat() {
  const std::scoped_lock lock(mutex_);
  if (fd_ < 0 || !mine(look())) return;
  // The number has leading zeros, so that it is changed where it stands.
  for (std::size_t i = number_at_ + number_width; i-- > number_at_;) {
    if (text_[i]++ != '9') break;
    text_[i] = '0';
  }
  if (files_.write(fd_, text_.data(), text_.size(), 0) == ssize_t(text_.size())) files_.sync(fd_);
}

void DirectoryLock::must_hold() {
  const std::scoped_lock lock(mutex_);
  if (fd_ < 0) return take();
  const LockContent seen = look();
  if (mine(seen)) return;
  const auto holder = lock_holder(seen.text());
  if (!holder || holder->run == me_.run) return take();
  fail(Kind::usage, directory_.string(),
       ": this run was not heard from, and another one has taken the directory: ", words_for(seen.text()),
       "; this one saves nothing more there");
}

}  // namespace weft::checkpoint
