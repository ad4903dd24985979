// A pidfd a worker; stopping is one signal to all process groups and a time.
#include "weft/launch/group.h"

#include <unistd.h>

#include <csignal>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/launch/error_file.h"

namespace weft::launch {

struct Group::Member {
  Worker worker;
  Process process;
  std::unique_ptr<Outlet> out, err;
  bool runs = false;
};

namespace {

constexpr double to_end_others = 3;  // seconds

bool needs_outlet(const Worker& worker, Streams stream) {
  if (has(worker.files, stream)) return true;
  if (stream == Streams::out) return !has(worker.console, stream);
  // stderr holds the last words, unless it is a person's terminal and there is nobody to mix with.
  return worker.overheard || !(has(worker.console, stream) && worker.prefix.empty() && isatty(STDERR_FILENO));
}

/// Every signal that ends a job is the one to save by; SIGKILL is what it is.
int heard_by(const Worker& worker, int number) {
  return worker.save_signal != 0 && number != SIGKILL ? worker.save_signal : number;
}

std::unique_ptr<Outlet> outlet(Loop& loop, const Worker& worker, Streams stream, Console& console) {
  if (!needs_outlet(worker, stream)) return nullptr;
  Ways ways{.file = {}, .console = has(worker.console, stream) ? &console : nullptr, .prefix = worker.prefix};
  if (has(worker.files, stream))
    ways.file = worker.folder / (stream == Streams::out ? "stdout.log" : "stderr.log");
  return std::make_unique<Outlet>(loop, std::move(ways));
}

}  // namespace

Group::Group(Loop& loop, Consoles consoles, const Keeper& keeper, Events events)
    : loop_(loop), consoles_(consoles), keeper_(keeper), events_(std::move(events)) {}

Group::~Group() {
  loop_.cancel(kill_time_);
  for (const auto& member : members_) {
    if (!member->runs) continue;
    loop_.forget(member->process.ended.get());
    signal_group(member->process, SIGKILL);
    keeper_.forget(member->process.id);
    reap(member->process);
  }
}

void Group::start(const std::vector<Worker>& workers) {
  for (const Worker& worker : workers) start_one(worker);
}

void Group::start_one(const Worker& worker) {
  auto member = std::make_unique<Member>();
  Member& m = *member;
  m.worker = worker;
  if (!worker.folder.empty()) make_directories(worker.folder);
  m.out = outlet(loop_, worker, Streams::out, consoles_.out);
  m.err = outlet(loop_, worker, Streams::err, consoles_.err);
  m.process = launch::start({.words = worker.words,
                             .environment = worker.environment,
                             .out = m.out ? m.out->for_worker() : -1,
                             .err = m.err ? m.err->for_worker() : -1,
                             .keep = worker.keep,
                             .keeper = keeper_.door()});
  for (Outlet* o : {m.out.get(), m.err.get()})
    if (o != nullptr) o->started();
  m.runs = true;
  ++running_;
  members_.push_back(std::move(member));
  loop_.watch(m.process.ended.get(), EPOLLIN, [this, &m](std::uint32_t) { end(m); });
}

Ended Group::ended_as(const Member& m, End how) {
  const bool logs = m.worker.files != Streams::none;
  std::string said = m.err ? m.err->last_words() : "";
  if (const std::string own = message_in(m.worker.error_file); !own.empty() && said.find(own) == said.npos)
    said += text(said.empty() ? "" : "\n", own);
  return {.rank = m.worker.rank,
          .local_rank = m.worker.local_rank,
          .ranks = m.worker.ranks,
          .process = m.process.id,
          .end = how,
          .when = Loop::Clock::now(),
          .said = said.empty() && m.out ? m.out->last_words() : said,
          .folder = logs ? m.worker.folder : std::filesystem::path()};
}

void Group::end(Member& m) {
  const auto when = Loop::Clock::now();
  loop_.forget(m.process.ended.get());
  signal_group(m.process, SIGKILL);  // what it started, before its number may be another's
  keeper_.forget(m.process.id);
  const End how = reap(m.process);
  m.runs = false;
  --running_;
  for (Outlet* o : {m.out.get(), m.err.get()}) {
    if (o == nullptr) continue;
    o->drain();
    o->finish();
  }
  Ended ended = ended_as(m, how);
  ended.when = when;
  const bool last = running_ == 0;
  if (last) loop_.cancel(kill_time_);
  const Events events = events_;  // what is called may end this group
  events.ended(ended);
  if (last) events.empty();
}

Ended Group::so_far() const {
  for (const auto& member : members_)
    if (member->runs) return ended_as(*member, {});
  return {};
}

void Group::signal(int number) {
  for (const auto& member : members_)
    if (member->runs) signal_group(member->process, heard_by(member->worker, number));
}

void Group::stop(int number, double grace) {
  signal(number);
  kill_after(grace);
}

void Group::kill_after(double grace) {
  const auto at = Loop::Clock::now() +
                  std::chrono::duration_cast<Loop::Clock::duration>(std::chrono::duration<double>(grace));
  if (at >= kill_at_) return;
  kill_at_ = at;
  loop_.cancel(kill_time_);
  kill_time_ = loop_.after(grace, [this] {
    // Who has a signal of its own starts others elsewhere, as mpirun and srun do: killed, it would leave them
    // running.
    bool others = false;
    for (const auto& member : members_) {
      if (!member->runs) continue;
      const bool has_others = member->worker.save_signal != 0;
      signal_group(member->process, has_others ? SIGTERM : SIGKILL);
      others = others || has_others;
    }
    if (others) kill_time_ = loop_.after(to_end_others, [this] { signal(SIGKILL); });
  });
}

std::vector<pid_t> Group::processes() const {
  std::vector<pid_t> out;
  for (const auto& member : members_)
    if (member->runs) out.push_back(member->process.id);
  return out;
}

}  // namespace weft::launch
