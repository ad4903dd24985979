// What objects of every kind are rendered from.
#pragma once

#include <string>
#include <vector>

#include "weft/jobs/render.h"

namespace weft::jobs {

inline constexpr const char* name_label = "weft/job";

int most_nodes(const Job& job);
/// Restarts of the workers inside their pods; the pods' own restarts are backoffLimit.
int restarts(const Job& job);

Tree metadata_of(const Job& job, const std::string& name);
Tree header(const char* version, const char* kind, Tree metadata);

/// Which of the pod's containers works: the one named worker, else the first.
Tree& worker_in(Tree& spec);
/// weft launch, and the program behind it.
std::vector<std::string> weft_words(const Job& job, const Rendering& how);
/// The pod of a node, with the words that it runs.
Tree pod_of(const Job& job, const Rendering& how, const std::vector<std::string>& words);
/// Of an Indexed Job with a pod a node.
Tree job_spec(const Job& job, const Rendering& how);

// For clusters with an operator: Kubernetes' JobSet, and Kubeflow's two.
std::vector<Tree> as_jobset(const Job& job, const Rendering& how);
std::vector<Tree> as_trainjob(const Job& job, const Rendering& how);
std::vector<Tree> as_mpijob(const Job& job, const Rendering& how);

}  // namespace weft::jobs
