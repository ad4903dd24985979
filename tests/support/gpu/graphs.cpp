// Graphs: calls that were captured and nodes that were added, made again whenever the graph is launched. What
// no node must come behind runs on a stream of its own, so that an order that nobody asked for is none.
#include <algorithm>
#include <map>

#include "tests/support/gpu/streams.h"

using emulated::stream_of;

namespace emulated {
namespace {

/// A launch of a graph, spread over streams beside the one that launches it.
class Spread {
 public:
  explicit Spread(CUstream_st& on) : on_(on) {}
  /// Begins behind what the stream was given, and what it is given later comes behind all of it.
  void play(const CUgraph_st& graph, CUstream_st& first) {
    CUevent_st begin;
    record(begin, first);
    std::vector<CUstream_st*> used{&first};
    const auto another = [&]() -> CUstream_st& {
      used.push_back(&fresh());
      wait(*used.back(), begin);
      return *used.back();
    };
    make_calls(graph, first, another);
    run_nodes(graph, first, another);
    for (std::size_t i = 1; i < used.size(); ++i) {
      CUevent_st end;
      record(end, *used[i]);
      wait(first, end);
    }
  }

 private:
  CUstream_st& fresh() {
    auto& beside = runtime().beside[&on_];
    if (used_ == beside.size()) {
      beside.push_back(&new_stream());
      beside.back()->device = on_.device;
    }
    return *beside[used_++];
  }

  template <class Another>
  static void make_calls(const CUgraph_st& graph, CUstream_st& first, const Another& another) {
    std::vector<CUstream_st*> streams{&first};
    while (streams.size() < graph.streams.size()) streams.push_back(&another());
    std::map<CUevent_st*, CUevent_st> events;
    for (const Recorded& call : graph.calls) {
      CUstream_st& own = *streams[call.stream];
      if (call.records)
        record(events[call.records], own);
      else if (call.waits)
        wait(own, events[call.waits]);
      else
        give(own, call.act, call.ready);
    }
  }

  /// A node goes on in the stream of one that it comes behind, where nothing came behind that yet.
  template <class Another>
  void run_nodes(const CUgraph_st& graph, CUstream_st& first, const Another& another) {
    std::vector<CUstream_st*> streams(graph.nodes.size());
    std::vector<CUevent_st> ends(graph.nodes.size());
    std::map<CUstream_st*, std::size_t> last;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const CUgraphNode_st& node = *graph.nodes[i];
      CUstream_st* own = node.after.empty() ? &first : streams[node.after.front()];
      const bool goes_on = node.after.empty() ? !last.contains(own) : last[own] == node.after.front();
      if (!goes_on) own = &another();
      for (const std::size_t before : node.after) wait(*own, ends[before]);
      if (node.child)
        play(*node.child, *own);
      else
        give(*own, [bound = node.bound, grid = node.grid] { bound(grid); });
      record(ends[i], *own);
      streams[i] = own;
      last[own] = i;
    }
  }

  CUstream_st& on_;
  std::size_t used_ = 0;
};

/// Where nodes stand in the graph; empty where one is not of it.
std::vector<std::size_t> places_of(const CUgraph_st& graph, const cudaGraphNode_t* nodes, std::size_t count) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < graph.nodes.size(); ++k)
      if (graph.nodes[k].get() == nodes[i]) out.push_back(k);
  if (out.size() != count) out.clear();
  return out;
}

cudaError_t add(cudaGraphNode_t* node, CUgraph_st& graph, std::vector<std::size_t> after, CUgraphNode_st is) {
  is.after = std::move(after);
  graph.nodes.push_back(std::make_shared<CUgraphNode_st>(std::move(is)));
  *node = graph.nodes.back().get();
  return cudaSuccess;
}

/// What a node becomes by these parameters, where the GPU takes them.
cudaError_t of_kernel(CUgraphNode_st& node, const cudaKernelNodeParams& p) {
  const Grid grid{{p.gridDim.x}, {p.blockDim.x}, p.sharedMemBytes};
  if (const int error = launch_error(nullptr, grid)) return cudaError_t(error);
  Bound it = bound(p.func, p.kernelParams);
  if (!it) return cudaErrorInvalidDeviceFunction;
  node.kernel = p.func;
  node.grid = grid;
  node.bound = std::move(it);
  return cudaSuccess;
}

/// Whether one graph may take the other's place in one that was made ready.
bool alike(const CUgraph_st& a, const CUgraph_st& b) {
  const auto same = [](const Recorded& x, const Recorded& y) {
    return x.stream == y.stream && !x.act == !y.act && x.records == y.records && x.waits == y.waits;
  };
  return a.streams.size() == b.streams.size() && a.nodes.size() == b.nodes.size() &&
         std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(), same);
}

/// The node of what was made ready; null where the graph has none such.
CUgraphNode_st* node_of(CUgraphExec_st& exec, cudaGraphNode_t node, bool child) {
  const auto place = exec.places.find(node);
  if (place == exec.places.end()) return nullptr;
  CUgraphNode_st* const own = exec.graph.nodes[place->second].get();
  return bool(own->child) == child ? own : nullptr;
}

}  // namespace
}  // namespace emulated

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const auto lock = emulated::hold();
  if (!stream) return cudaErrorStreamCaptureUnsupported;
  if (stream->captures) return cudaErrorIllegalState;
  stream->captures = new CUgraph_st{{stream}, {}, {}};
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const auto lock = emulated::hold();
  if (!stream || !stream->captures) return cudaErrorIllegalState;
  *graph = stream->captures;
  for (CUstream_st* each : (*graph)->streams) each->captures = nullptr;
  return cudaSuccess;
}
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new CUgraph_st;
  return cudaSuccess;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                   std::size_t count, const cudaKernelNodeParams* params) {
  const auto lock = emulated::hold();
  auto places = emulated::places_of(*graph, after, count);
  if (places.size() != count) return cudaErrorInvalidValue;
  CUgraphNode_st is;
  if (const cudaError_t error = emulated::of_kernel(is, *params); error != cudaSuccess) return error;
  return emulated::add(node, *graph, std::move(places), std::move(is));
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                       std::size_t count, cudaGraph_t child) {
  const auto lock = emulated::hold();
  auto places = emulated::places_of(*graph, after, count);
  if (places.size() != count) return cudaErrorInvalidValue;
  CUgraphNode_st is;
  is.child = std::make_shared<const CUgraph_st>(*child);
  return emulated::add(node, *graph, std::move(places), std::move(is));
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  const auto lock = emulated::hold();
  ++emulated::meter().asked;
  CUgraphNode_st* const own = emulated::node_of(*exec, node, false);
  return own ? emulated::of_kernel(*own, *params) : cudaErrorInvalidValue;
}
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  const auto lock = emulated::hold();
  ++emulated::meter().asked;
  CUgraphNode_st* const own = emulated::node_of(*exec, node, true);
  if (!own) return cudaErrorInvalidValue;
  if (!emulated::alike(*own->child, *child)) return cudaErrorGraphExecUpdateFailure;
  own->child = std::make_shared<const CUgraph_st>(*child);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const auto lock = emulated::hold();
  *exec = new CUgraphExec_st{*graph, {}};
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    (*exec)->places[graph->nodes[i].get()] = i;
    (*exec)->graph.nodes[i] = std::make_shared<CUgraphNode_st>(*graph->nodes[i]);
  }
  return cudaSuccess;
}
// Behind all that the stream was given, and later work behind it.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t on) {
  const auto lock = emulated::hold();
  CUstream_st& stream = stream_of(on);
  if (stream.device != emulated::chosen_device()) return cudaErrorInvalidResourceHandle;
  ++emulated::meter().asked;
  emulated::Spread(stream).play(exec->graph, stream);
  emulated::give(stream, [] {});
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}

}  // extern "C"
