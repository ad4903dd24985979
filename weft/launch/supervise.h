// A job on this node alone: coordinator and agent in one process, no port.
#pragma once

#include "weft/launch/agent.h"
#include "weft/launch/coordinator.h"

namespace weft::launch {

struct NodeJob {
  Rules rules;
  Join self;
  Agent::Work work;
  std::vector<int> signals;  // that end the job
};

/// Runs the job and returns its exit code: the workers' own, 128 + signal, or 0. Says what happens on stderr.
/// The calling thread must be the only one, because signals are taken from it and children die with it.
int supervise(const NodeJob& job);

struct Meeting {
  std::vector<Endpoint> at;
};
/// The same on each of several nodes, which meet at an endpoint: the node that wants rank 0 serves there, or,
/// where no rank is wanted, the first one whose address it is. Every node returns the job's code.
///
/// Of several endpoints each belongs to a node, the n-th to the one that wants rank n, else to one whose
/// address it is. All try them in turn; a node that comes to its own coordinates, if most of the others'
/// nodes join it soon, and else tries on. So the job outlives the nodes of fewer than half of the endpoints.
int supervise_with_others(const NodeJob& job, const Meeting& meeting);

}  // namespace weft::launch
