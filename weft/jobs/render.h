// A job as objects that a cluster runs without an operator of its own.
#pragma once

#include <map>
#include <string>

#include "weft/jobs/job.h"

namespace weft::jobs {

/// job: an Indexed Job with a headless Service, a pod a node with an agent in it. jobset: the same in a
/// JobSet, which makes the service. trainjob: a TrainJob, and the TrainingRuntime that such a JobSet is made
/// of. mpijob: a launcher with a hostfile, and workers that hear ssh.
enum class Objects { job, jobset, trainjob, mpijob };

struct Rendering {
  Objects objects = Objects::job;
  std::string image;           // instead of the file's; empty: that
  std::string priority_class;  // of the cluster's; empty: none
  std::map<std::string, std::string>
      files;  // name to content: travel as a ConfigMap, and lie in files_folder
};
inline constexpr const char* files_folder = "/etc/weft/files";
/// Who runs in the image that deploy/Containerfile builds.
inline constexpr int image_user = 1000;

/// What `weft launch` is told in a pod: its words before the program's.
std::vector<std::string> launch_words(const Job& job, const Rendering& how);

/// One document each, ready for kubectl apply. `notices` gets what could not be said in them.
std::vector<Tree> render(const Job& job, const Rendering& how, std::vector<std::string>& notices);

}  // namespace weft::jobs
