#include "weft/backend/cuda/graphs.h"

#include <algorithm>
#include <utility>

namespace weft::cuda {
namespace {

/// Fewer are as soon asked one by one.
constexpr std::size_t fewest = 8;
/// Lists of the same kinds with other addresses: microbatches under way, and layers that are alike.
constexpr std::size_t most_alike = 32;
/// Orders in graphs, and lists of kinds that were met: experts bring new products with every step.
constexpr std::size_t most_kept = 100'000, most_known = 4096;

/// What a call asks, caught as a graph.
class Caught {
 public:
  Caught(const Orders& orders, std::size_t i, const Stream& aside) {
    check(cudaStreamBeginCapture(aside.get(), cudaStreamCaptureModeThreadLocal), "catching a call");
    try {
      orders.play(i, aside.get());
    } catch (...) {  // the stream must be free for the next call
      cudaStreamEndCapture(aside.get(), &graph_);
      drop();
      throw;
    }
    check(cudaStreamEndCapture(aside.get(), &graph_), "catching a call");
  }
  ~Caught() { drop(); }
  Caught(const Caught&) = delete;
  Caught& operator=(const Caught&) = delete;
  cudaGraph_t get() const { return graph_; }

 private:
  void drop() const {
    if (graph_) cudaGraphDestroy(graph_);
  }
  cudaGraph_t graph_ = nullptr;
};

/// Whatever becomes of orders, nobody asks for them again.
struct Cleared {
  Orders& orders;
  ~Cleared() { orders.clear(); }
};

cudaKernelNodeParams node_of(const gpu::Launch& launch) {
  cudaKernelNodeParams out{};
  out.func = const_cast<void*>(launch.kernel);
  out.gridDim = dim3(gpu::blocks_of(launch.shape));
  out.blockDim = dim3(unsigned(launch.shape.threads));
  out.sharedMemBytes = unsigned(launch.shape.shared);
  out.kernelParams = launch.arguments;
  return out;
}

}  // namespace

Graph::Graph(Orders& orders, const Stream& aside) {
  std::swap(orders_, orders);
  cudaGraph_t graph = nullptr;
  check(cudaGraphCreate(&graph, 0), "a graph");
  graph_.reset(graph);
  nodes_.reserve(orders_.size());
  for (std::size_t i = 0; i < orders_.size(); ++i) add(i, aside);
  cudaGraphExec_t runs = nullptr;
  check(cudaGraphInstantiate(&runs, graph, 0), "a graph");
  runs_.reset(runs);
}

void Graph::add(std::size_t i, const Stream& aside) {
  const cudaGraphNode_t* const before = nodes_.empty() ? nullptr : &nodes_.back();
  cudaGraphNode_t node = nullptr;
  if (orders_[i].call) {
    const Caught caught(orders_, i, aside);
    check(cudaGraphAddChildGraphNode(&node, graph_.get(), before, before ? 1 : 0, caught.get()),
          "a call in a graph");
  } else {
    orders_.with_launch(i, [&](const gpu::Launch& launch) {
      const cudaKernelNodeParams params = node_of(launch);
      gpu::check_launch(cudaGraphAddKernelNode(&node, graph_.get(), before, before ? 1 : 0, &params),
                        launch.shape);
    });
  }
  nodes_.push_back(node);
}

void Graph::set(std::size_t i, const Orders& orders, const Stream& aside) {
  if (orders[i].call) {
    const Caught caught(orders, i, aside);
    return check(cudaGraphExecChildGraphNodeSetParams(runs_.get(), nodes_[i], caught.get()),
                 "a call in a graph");
  }
  orders.with_launch(i, [&](const gpu::Launch& launch) {
    const cudaKernelNodeParams params = node_of(launch);
    gpu::check_launch(cudaGraphExecKernelNodeSetParams(runs_.get(), nodes_[i], &params), launch.shape);
  });
}

std::size_t Graph::differs(const Orders& orders, std::size_t enough) const {
  if (!orders_.same_kinds(orders)) return orders.size();
  std::size_t out = 0;
  for (std::size_t i = 0; i < orders.size() && out < enough; ++i) out += orders_.same(i, orders) ? 0 : 1;
  return out;
}

void Graph::become(Orders& orders, const Stream& aside) {
  for (std::size_t i = 0; i < orders.size(); ++i)
    if (!orders_.same(i, orders)) set(i, orders, aside);
  std::swap(orders_, orders);
}

void Graph::launch(const Stream& stream) const {
  check(cudaGraphLaunch(runs_.get(), stream.get()), "launching a graph");
}

void Graphs::forget() {
  known_.clear();
  kept_ = 0;
}

Graph* Graphs::fitting(Alike& alike, Orders& orders) {
  auto closest = alike.end();
  std::size_t fewest_differ = orders.size();
  for (auto each = alike.begin(); each != alike.end() && fewest_differ > 0; ++each) {
    const std::size_t differ = each->differs(orders, fewest_differ);
    if (differ < fewest_differ) fewest_differ = differ, closest = each;
  }
  if (fewest_differ <= orders.size() / 2 && closest != alike.end()) {
    counts_.set_anew += std::int64_t(fewest_differ);
    Alike under_way;  // gone where that fails
    under_way.splice(under_way.end(), alike, closest);
    if (fewest_differ > 0) closest->become(orders, aside_);
    alike.splice(alike.end(), under_way);
  } else if (alike.size() < most_alike) {
    kept_ += orders.size();
    alike.emplace_back(orders, aside_);
  } else {
    return nullptr;
  }
  return &alike.back();
}

// What comes for the first time may load kernels and set what they may take, which a graph cannot.
void Graphs::play(Orders& orders, const Stream& stream) {
  if (kept_ > most_kept || known_.size() > most_known) forget();
  const Cleared at_the_end{orders};
  Graph* graph = nullptr;
  if (orders.size() >= fewest) {
    const auto [known, first] = known_.try_emplace(orders.hash_of_kinds());
    if (!first) graph = fitting(known->second, orders);
  }
  if (graph) {
    graph->launch(stream);
    ++counts_.launched;
    counts_.orders += std::int64_t(graph->size());
  } else {
    for (std::size_t i = 0; i < orders.size(); ++i) orders.play(i, stream.get());
  }
}

}  // namespace weft::cuda
