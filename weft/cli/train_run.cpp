// Joins what training needs: nothing is computed here.
#include "weft/cli/train_run.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "weft/base/clock.h"
#include "weft/base/pulse.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/cli/rank_device.h"
#include "weft/cli/train_faults.h"
#include "weft/cli/verb.h"
#include "weft/comm/circle.h"
#include "weft/comm/mpi.h"
#include "weft/comm/tcp.h"
#include "weft/comm/threads.h"
#include "weft/generate/continue.h"
#include "weft/launch/error_file.h"
#include "weft/launch/herald.h"
#include "weft/launch/lifeline.h"
#include "weft/launch/process.h"
#include "weft/launch/signals.h"
#include "weft/report/console.h"
#include "weft/report/jsonl.h"
#include "weft/report/progress.h"
#include "weft/report/tensorboard.h"
#include "weft/train/alike.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"
#include "weft/train/trainer.h"

namespace weft::cli {
namespace {

/// Hears every signal that asks a run to end on a thread of its own, so that no handler is needed and no
/// global either. Slurm users choose SIGUSR1, and mpirun and srun hand SIGUSR2 on. A second one ends the
/// process, as people expect who press Ctrl-C twice.
class Ears {
 public:
  Ears() {
    sigemptyset(&wanted_);
    for (const int signal : launch::not_ignored({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}))
      sigaddset(&wanted_, signal);
    sigaddset(&wanted_, waking);
    pthread_sigmask(SIG_BLOCK, &wanted_, &before_);
    // Whoever reads the log may go; the run stays.
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignored, &pipe_before_);
    thread_ = std::thread([this] { listen(); });
  }
  ~Ears() {
    closing_ = true;
    pthread_kill(thread_.native_handle(), waking);
    thread_.join();
    sigaction(SIGPIPE, &pipe_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Ears(const Ears&) = delete;
  Ears& operator=(const Ears&) = delete;
  const std::atomic<bool>& asked() const { return asked_; }

 private:
  static constexpr int waking = SIGUSR2;
  void listen() {
    for (int signal = 0;;) {
      sigwait(&wanted_, &signal);
      if (closing_) return;
      if (asked_.exchange(true)) std::quick_exit(static_cast<int>(Exit::stopped));
    }
  }
  sigset_t wanted_{}, before_{};
  struct sigaction pipe_before_ {};
  std::atomic<bool> asked_{false}, closing_{false};
  std::thread thread_;
};

using Sinks = std::vector<std::unique_ptr<report::Sink>>;

Sinks sinks_of(const TrainConfig& config, const std::string& job) {
  const LogConfig& log = config.log;
  Sinks sinks;
  sinks.push_back(report::console_sink(report::console_of_stderr(), log.lines));
  if (!log.jsonl.empty()) sinks.push_back(report::jsonl_sink(log.jsonl));
  if (!log.tensorboard.empty())
    sinks.push_back(report::tensorboard_sink({.directory = log.tensorboard,
                                              .learning_rate = log.tensorboard_learning_rate,
                                              .loss_scale = log.tensorboard_loss_scale,
                                              .timers = log.tensorboard_timers,
                                              .memory = log.tensorboard_memory,
                                              .perplexity = log.tensorboard_perplexity,
                                              .world_size = log.tensorboard_world_size,
                                              .interval = log.tensorboard_interval}));
  if (log.progress)
    sinks.push_back(
        report::progress_sink({.file = std::filesystem::path(config.checkpoint.save) / "progress.txt",
                               .ranks = layout_of(config.parallel).world(),
                               .job = job,
                               .now = {}}));
  return sinks;
}

Exit exit_of(Ending ending) {
  if (ending == Ending::unsaved) return Exit::failed;
  return ending == Ending::finished ? Exit::done : Exit::stopped;
}

// Of processes that were asked for one run the first writes the indices that the others find.
RunData open_data_in_turn(const TrainConfig& config, Communicator& world) {
  must_be_alike(config, world);
  if (world.rank() > 0) world.barrier();
  RunData data = open_run_data(config);
  if (world.rank() == 0) world.barrier();
  return data;
}

/// How the trained model goes on from the prompt; all ranks take part.
std::string sample(const RunConfig& run, const ModelConfig& model, const Tokenizer& tokenizer,
                   const Replica& replica) {
  const Circles circles = replica.circles();
  const PipelineHere pipeline{.home = replica.homes(),
                              .parts = replica.parts(),
                              .circle = replica.mesh().along(Axis::pp),
                              .dtype = replica.dtype()};
  return continue_text({.model = {.stages = replica.stages(),
                                  .config = model,
                                  .tp = {circles.tp, circles.between},
                                  .device = replica.device(),
                                  .context = circles.context,
                                  .pipeline = &pipeline},
                        .tokenizer = tokenizer},
                       {.prompt = run.sample_prompt,
                        .tokens = run.sample_tokens,
                        .choice = {.temperature = 0.8, .top_k = 40},
                        .seed = std::uint64_t(run.seed)});
}

/// What a rank computes on, as somebody would look for it who heard that it errs.
std::string machine_of(const RunConfig& run) {
  std::string host(256, '\0');
  gethostname(host.data(), host.size() - 1);
  return run.device.starts_with("cpu") ? host.c_str() : text(host.c_str(), " ", run.device);
}

/// Where our supervisor reads what we do; on another machine than its own, what is told to it from there.
std::optional<PulseBoard> board_of(const Launched& launched) {
  std::error_code none;
  if (!launched.watcher.empty()) return PulseBoard::alone();
  if (launched.pulse.empty() || !std::filesystem::exists(launched.pulse, none)) return std::nullopt;
  return PulseBoard::open(launched.pulse);
}

launch::Whereabouts whereabouts_of(const Launched& launched) {
  return {.rank = launched.rank,
          .node = launched.node,
          .local_rank = launched.local_rank,
          .host = launched.host,
          .process = getpid()};
}

/// Nobody reaches this machine any more, so nobody ends this rank, which waits for others for ever.
[[noreturn]] void end_alone(int rank) {
  std::cerr << text("train: rank ", rank,
                    " has not reached its launcher for a minute: that is gone, or this machine is cut off; "
                    "it ends\n");
  std::_Exit(static_cast<int>(Exit::failed));
}

/// A rank whose peer is gone is not the one that failed: it gives its supervisor a moment to end it, and says
/// why it ends where nobody does.
int say_whose_failure(const std::atomic<bool>& asked, const std::string& error_file) {
  const auto write = [&](const std::string& what) {
    if (!error_file.empty()) launch::write_error_file(error_file, what, std::time(nullptr));
  };
  try {
    throw;
  } catch (const BrokenOff&) {
    const Deadline late(2);
    while (!asked && !late.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (asked) std::quick_exit(static_cast<int>(Exit::stopped));
  } catch (const std::bad_alloc&) {
    write("out of memory");
  } catch (const std::exception& e) {  // all are said below
    write(spelled(e.what()));
  }
  return say_failure();
}

/// The launcher hears how this process ends before it does.
int last_word(const launch::Lifeline& to, int code) {
  const bool well = code == static_cast<int>(Exit::done) || code == static_cast<int>(Exit::stopped);
  well ? to.ends() : to.fails(code);
  return code;
}

DeviceOptions options_of(const TrainConfig& config, const Launched& launched, const Communicator& world) {
  return {.threads = threads_of_a_rank(config.run, launched, world.size()),
          .exact = config.model.exact,
          .graphs = config.run.graphs,
          .warpgroups = config.run.warpgroups,
          .place = launched.processes() ? launched.local_rank : world.rank()};
}

}  // namespace

int threads_of_a_rank(const RunConfig& run, const Launched& launched, int ranks) {
  if (run.threads > 0) return run.threads;
  const int usable = int(std::thread::hardware_concurrency());
  if (!launched.processes()) return std::max(1, usable / ranks);
  const bool bound = usable < int(sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, bound ? usable : usable / launched.on_this_machine);
}

int run_training(const TrainConfig& config, const Launched& launched, Wording wording) {
  if (launched.supervised) launch::die_with_parent();
  const launch::Lifeline lifeline(launched.lifeline, launched.round, launched.rank);
  const Ears ears;
  const Log log(0, {.stamped = false, .wording = std::move(wording)});
  const ParallelLayout layout = layout_of(config.parallel);
  report::Outlet outlet(launched.rank == 0 ? sinks_of(config, launched.job) : Sinks(),
                        std::size_t(config.log.tensorboard_queue),
                        [&log](const std::string& sentence) { log.warning(sentence); });
  std::atomic<Ending> ending = Ending::finished;
  const auto trials = new_trials();
  const auto rank = [&](Communicator& world, const RunData& data) {
    DeviceOptions options = options_of(config, launched, world);
    options.trials = trials;
    RankDevice here(config.run.device, options, world);
    const bool tells = world.rank() == 0;
    if (tells)
      for (const std::string& note : here.notes()) log.info(note);
    const ProcessMesh mesh(layout, here.world());
    const Lent lent{.device = here.device(),
                    .mesh = mesh,
                    .log = log,
                    .outlet = tells ? &outlet : nullptr,
                    .asked_to_stop = &ears.asked(),
                    .machine = machine_of(config.run),
                    .before_step = faults_of_rank(launched.faults, world.rank())};
    Trainer trainer(config, data, lent);
    const Ending mine = trainer.run();
    if (tells || launched.processes()) ending = mine;
    if (tells && mine == Ending::unsaved)
      log.error(text("the run ends without its last checkpoint, see above; --save ", config.checkpoint.save));
    if (config.run.sample_prompt.empty()) return;
    outlet.drain();
    const std::string said = sample(config.run, config.model, *data.tokenizer, trainer.replica());
    if (tells) std::cout << config.run.sample_prompt << said << "\n";
  };
  const std::optional<PulseBoard> board = board_of(launched);
  std::optional<launch::Herald> herald;
  if (!launched.watcher.empty())
    herald.emplace(launch::read_watcher(launched.watcher), whereabouts_of(launched), *board,
                   launch::Herald::Loss{.act = [mine = launched.rank] { end_alone(mine); }});
  Pulse pulse = board ? board->pulse(launched.watcher.empty() ? launched.local_rank : 0) : Pulse();
  const auto alone = [&](Communicator& world) { rank(world, open_data_in_turn(config, world)); };
  int failed = 0;
  if (launched.mpi) {
    run_under_mpi(
        alone, [&] { return last_word(lifeline, say_failure()); }, &pulse);
  } else if (launched.tcp) {
    failed = run_under_tcp(
        launched.meeting, alone, [&] { return say_whose_failure(ears.asked(), launched.error_file); },
        &pulse);
  } else {
    const RunData data = open_run_data(config);
    run_as_threads(
        layout.world(), [&](Communicator& world) { rank(world, data); }, board ? &*board : nullptr);
  }
  return last_word(lifeline, failed != 0 ? failed : static_cast<int>(exit_of(ending)));
}

}  // namespace weft::cli
