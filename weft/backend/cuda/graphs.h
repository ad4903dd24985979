// Lists of orders that came before, kept by the GPU as graphs: such a list is asked for in one call.
//
// What a graph does is never assumed. The host says every order, as it does without graphs; where a list has
// the kinds of one that is kept, orders that differ are set anew in the graph, and the others cost the host a
// comparison of bytes. So a graph may serve any microbatch, layer or step whose launches it happens to fit.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "weft/backend/cuda/orders.h"
#include "weft/backend/cuda/runtime.h"

namespace weft::cuda {

/// One list, one order behind the other.
class Graph {
 public:
  /// Takes the orders. `aside` is a stream on which nobody has work: what calls ask is caught there.
  Graph(Orders& orders, const Stream& aside);

  /// In how many of its orders it differs from these; so many or more where that is `enough`. Orders of other
  /// kinds: all.
  std::size_t differs(const Orders& orders, std::size_t enough) const;
  /// From its next launch on it does these, which are of its kinds and which it takes. Launches that the
  /// stream was asked for are as they were. Where this fails it does neither these nor those.
  void become(Orders& orders, const Stream& aside);
  void launch(const Stream& stream) const;
  std::size_t size() const { return orders_.size(); }

 private:
  void add(std::size_t i, const Stream& aside);
  void set(std::size_t i, const Orders& orders, const Stream& aside);

  struct End {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
    void operator()(cudaGraphExec_t runs) const { cudaGraphExecDestroy(runs); }
  };
  Orders orders_;
  std::unique_ptr<CUgraph_st, End> graph_;
  std::unique_ptr<CUgraphExec_st, End> runs_;
  std::vector<cudaGraphNode_t> nodes_;
};

/// What they saved, for tests and for whoever measures.
struct GraphCounts {
  std::int64_t launched = 0;  // graphs
  std::int64_t orders = 0;    // in them
  std::int64_t set_anew = 0;  // of these
};

class Graphs {
 public:
  /// Asks the stream for the orders, and clears them.
  void play(Orders& orders, const Stream& stream);
  /// Graphs may name what is about to end.
  void forget();
  const GraphCounts& counts() const { return counts_; }

 private:
  /// Of one list of kinds: the graph that was used longest ago comes first, since steps go in circles.
  using Alike = std::list<Graph>;

  /// The graph that does these orders now; null: there is none, and they are best asked one by one.
  Graph* fitting(Alike& alike, Orders& orders);

  std::unordered_map<std::size_t, Alike> known_;  // by the hash of kinds; empty: they came once
  std::size_t kept_ = 0;                          // orders in all graphs
  Stream aside_;
  GraphCounts counts_;
};

}  // namespace weft::cuda
