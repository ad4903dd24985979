// weft launch: starts, watches and stops the processes of a job.
#include <algorithm>
#include <csignal>
#include <iostream>

#include "weft/base/error.h"
#include "weft/cli/launch_work.h"
#include "weft/cli/verbs.h"
#include "weft/launch/supervise.h"

namespace weft::cli {
namespace {

/// Gone with the launch, where nobody asked for it.
class Folder {
 public:
  explicit Folder(const Launch& launch) : path_(launch.made_folder ? launch.folder : "") {}
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

 private:
  std::filesystem::path path_;
};

std::vector<launch::Endpoint> places_of(const launch::Options& o) {
  return o.places.empty() ? std::vector{o.master} : o.places;
}

launch::Rules rules_of(const Launch& l) {
  const launch::Options& o = l.options;
  launch::Rules rules{.nodes = o.by == launch::By::agents ? o.nodes : launch::Nodes{},
                      .patience = o.patience,
                      .max_restarts = o.max_restarts,
                      .grace = o.grace,
                      .run_id = o.run_id,
                      .voters = int(places_of(o).size()),
                      .slow_window = o.hang.slow_window};
  // Another start on the same machines does not mend a person's mistake, nor what they compute.
  if (l.program.trains)
    rules.final_codes = {static_cast<int>(Exit::usage), static_cast<int>(Exit::fault_unsettled),
                         static_cast<int>(Exit::fault_confirmed)};
  return rules;
}

/// Training saves and ends by those too that a program of somebody's may use as it likes.
std::vector<int> signals_of(const Launch& l) {
  std::vector<int> out = l.options.signals;
  if (l.program.trains) out.insert(out.end(), {SIGUSR1, SIGUSR2});
  return out;
}

int run_launch(Args args) {
  if (!args.empty() && args[0] == "--take-a-seat") return take_a_seat(args.subspan(1));
  launch::Options options = launch::read_options(args, launch::environment_of_this_process());
  for (const std::string& notice : options.notices) std::cerr << notice << "\n";
  const Launch launch = prepared(std::move(options));
  const Folder folder(launch);
  const launch::Options& o = launch.options;
  const bool several = o.by == launch::By::agents && o.nodes.most > 1;
  const launch::NodeJob job{.rules = rules_of(launch),
                            .self = {.run_id = o.run_id,
                                     .host = launch::host_name(),
                                     .address = several ? o.local_address : "127.0.0.1",
                                     .wanted_rank = o.node_rank,
                                     .slots = slots_of(launch),
                                     .port = port_of(launch)},
                            .work = work_of(launch),
                            .signals = signals_of(launch)};
  return several ? launch::supervise_with_others(job, {.at = places_of(o)}) : launch::supervise(job);
}

std::string shown(const launch::OptionRow& row) {
  return row.letter.empty() ? text("--", row.name) : text("--", row.name, ", -", row.letter);
}

VerbHelp about_launch() {
  VerbHelp help{
      .usage = "weft launch [torchrun's or DeepSpeed's options] PROGRAM [its words]",
      .examples =
          {{"weft launch --nproc-per-node 8 --max-restarts 3 pretrain_gpt.py --save run --load run …",
            "a Megatron script with one word changed: eight ranks as threads, watched and started again"},
           {"weft launch --processes --nproc-per-node 8 --log-dir logs train gpt …",
            "ranks as processes over MPI, a folder of logs each"},
           {"weft launch --hostfile hosts --include 'a@b:0,1' train gpt …", "on other machines, by mpirun"},
           {"weft launch --launcher slurm --nnodes 2 --nproc-per-node 4 train gpt …",
            "in an allocation, by srun; deploy/slurm has the script"},
           {"weft launch --nproc-per-node 4 ./my_program", "any program, under torchrun's variables"}},
      .topics = {}};
  for (const launch::OptionRow& row : launch::option_rows()) {
    if (help.topics.empty() || help.topics.back().title != row.topic)
      help.topics.push_back({std::string(row.topic), {}});
    help.topics.back().options.push_back({shown(row), std::string(row.value), std::string(row.help)});
  }
  return help;
}

}  // namespace

Verb launch_verb() {
  return {"launch", "starts, watches and restarts the ranks of a job", run_launch, about_launch};
}

}  // namespace weft::cli
