// Graphs: calls that are kept, and made again on streams of their own.
#include <map>

#include "tests/support/gpu/streams.h"

using emulated::stream_of;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const auto lock = emulated::hold();
  stream_of(stream).captures = new CUgraph_st{{&stream_of(stream)}, {}};
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const auto lock = emulated::hold();
  *graph = stream_of(stream).captures;
  for (CUstream_st* each : (*graph)->streams) each->captures = nullptr;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const auto lock = emulated::hold();
  *exec = new CUgraphExec_st{*graph, {}};
  for (std::size_t i = 0; i < graph->streams.size(); ++i) (*exec)->streams.push_back(&emulated::new_stream());
  return cudaSuccess;
}
// The streams of the graph's own start after the launching stream and end in it.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t on) {
  const auto lock = emulated::hold();
  CUstream_st& stream = stream_of(on);
  std::map<CUevent_st*, CUevent_st> events;
  CUevent_st begin, end;
  emulated::record(begin, stream);
  for (CUstream_st* own : exec->streams) emulated::wait(*own, begin);
  for (const emulated::Recorded& call : exec->graph.calls) {
    CUstream_st& own = *exec->streams[call.stream];
    if (call.records)
      emulated::record(events[call.records], own);
    else if (call.waits)
      emulated::wait(own, events[call.waits]);
    else
      emulated::give(own, call.act, call.ready);
  }
  for (CUstream_st* own : exec->streams) {
    emulated::record(end, *own);
    emulated::wait(stream, end);
  }
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
