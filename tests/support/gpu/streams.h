// Streams, events and what waits in them, as the parts of the fake runtime share them.
#pragma once

#include <cuda_runtime.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "tests/support/gpu/emulated.h"

namespace emulated {

struct Mark {
  std::uint32_t stream = 0, position = 0;
};
struct Operation {
  std::function<void()> act;
  std::function<bool()> ready;
  std::vector<Mark> after;
  Turn turn;
};
struct Recorded {  // in a graph: a call, to be made again on the stream-th stream of the capture
  std::size_t stream;
  std::function<void()> act;
  std::function<bool()> ready;
  CUevent_st* records = nullptr;
  CUevent_st* waits = nullptr;
};

}  // namespace emulated

struct CUevent_st {  // of the GPU that was chosen when it was made
  emulated::Mark mark;
  emulated::Clock clock;
  CUgraph_st* in = nullptr;  // recorded while capturing
  int device = 0;
  bool timed = false;
  std::shared_ptr<double> when;  // of a timed one that was recorded: seconds, when the stream comes there
};
struct CUgraphNode_st {  // a kernel or a graph, behind other nodes
  std::vector<std::size_t> after;
  const void* kernel = nullptr;
  emulated::Grid grid;
  emulated::Bound bound;
  std::shared_ptr<const CUgraph_st> child;
};
struct CUgraph_st {  // what was captured, or nodes that were added
  std::vector<CUstream_st*> streams;
  std::vector<emulated::Recorded> calls;
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  CUgraph_st graph;                                     // with nodes of its own
  std::map<const CUgraphNode_st*, std::size_t> places;  // of those that it was made of
};
struct CUstream_st {
  std::uint32_t id = 0, given = 0, done = 0;
  std::deque<emulated::Operation> queue;
  std::vector<emulated::Mark> waits;  // of the next operation
  emulated::Clock clock;
  bool busy = false;
  int device = 0;
  CUgraph_st* captures = nullptr;
};

namespace emulated {

struct Runtime {
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::map<const CUstream_st*, std::vector<CUstream_st*>> beside;  // for graphs that it launches
  struct Block {
    std::size_t bytes;
    CUstream_st* freed_on = nullptr;
    int device = 0;
  };
  std::map<void*, Block> blocks;
  std::condition_variable_any news;
  unsigned pace = 0;
  double patience = 2;
  bool others = false;  // other processes are waited for, who give no news
  std::mt19937 random;
};
Runtime& runtime();
/// What this thread of the host knows to be done.
Clock& host_clock();

/// What this thread of the host chose.
int chosen_device();

CUstream_st& new_stream();
CUstream_st& stream_of(cudaStream_t stream);
using Lock = std::unique_lock<std::recursive_mutex>;
void wait_for(Mark mark, Lock& lock);
void wait_for(CUstream_st& stream, Lock& lock);
/// Puts work into the stream's queue, or into the graph that is captured.
void give(CUstream_st& stream, std::function<void()> act, std::function<bool()> ready = {});
void record(CUevent_st& event, CUstream_st& stream);
void wait(CUstream_st& stream, CUevent_st& event);
/// Does what is next in the stream, after whatever must come before it. False: nothing could be done.
bool advance(CUstream_st& stream);

}  // namespace emulated
