// Graphs of the emulated GPU: nodes without an order are found, and what a real runtime refuses is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/backend/faulty.h"
#include "tests/backend/gpu_trial.h"

namespace weft::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

struct Destroyed {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Held = std::unique_ptr<CUgraph_st, Destroyed>;

/// What was asked of a stream on which nobody has work.
template <class Act>
Held caught(const Act& act) {
  cudaStream_t aside = nullptr;
  cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking);
  cudaStreamBeginCapture(aside, cudaStreamCaptureModeThreadLocal);
  act(aside);
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(aside, &graph);
  return Held(graph);
}

/// Fills, then copies: two nodes of one graph.
struct TwoNodes {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t fills = nullptr, copies = nullptr;
  cudaGraphExec_t runs = nullptr;

  TwoNodes(const Array& x, const Array& out, bool ordered) {
    const Held first = caught([&](cudaStream_t s) { fill(s, x.data(), 3, 1000); }),
               second = caught([&](cudaStream_t s) { copy(s, out.data(), x.data(), 1000); });
    cudaGraphCreate(&graph, 0);
    cudaGraphAddChildGraphNode(&fills, graph, nullptr, 0, first.get());
    cudaGraphAddChildGraphNode(&copies, graph, &fills, ordered ? 1 : 0, second.get());
    cudaGraphInstantiate(&runs, graph, 0);
  }
  ~TwoNodes() {
    cudaGraphExecDestroy(runs);
    cudaGraphDestroy(graph);
  }
  TwoNodes(const TwoNodes&) = delete;
  TwoNodes& operator=(const TwoNodes&) = delete;
};

void launched_twice(bool ordered) {
  const Array x(1000), out(1000);
  const TwoNodes nodes(x, out, ordered);
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(nodes.runs, nullptr);
  if (ordered) {
    EXPECT_THAT(out.read(), Each(3));
  }
}

TEST(GpuNodes, come_behind_those_that_they_name) {
  EXPECT_THAT(found_by([] { launched_twice(true); }), Each(std::string()));
  EXPECT_THAT(found_by([] { launched_twice(false); }),
              Each(HasSubstr("with no order between their streams")));
}

TEST(GpuNodes, are_what_they_were_for_launches_before_they_changed) {
  const auto act = [] {
    const Array x(1000), out(1000);
    const TwoNodes nodes(x, out, true);
    cudaGraphLaunch(nodes.runs, nullptr);
    const Array first(1000);
    copy(nullptr, first.data(), out.data(), 1000);
    const Held sevens = caught([&](cudaStream_t s) { fill(s, x.data(), 7, 1000); });
    EXPECT_EQ(cudaGraphExecChildGraphNodeSetParams(nodes.runs, nodes.fills, sevens.get()), cudaSuccess);
    cudaGraphLaunch(nodes.runs, nullptr);
    EXPECT_THAT(first.read(), Each(3));
    EXPECT_THAT(out.read(), Each(7));
  };
  EXPECT_THAT(found_by(act), Each(std::string()));
}

TEST(GpuNodes, are_refused_where_the_runtime_refuses_them) {
  const Array x(1000), out(1000);
  const TwoNodes nodes(x, out, true), others(x, out, true);
  const Held two = caught([&](cudaStream_t s) {
    fill(s, x.data(), 7, 1000);
    fill(s, x.data(), 8, 1000);
  });
  // A node of another graph, a graph of another form, a kernel's words for a call, and a kernel of nobody's.
  EXPECT_EQ(cudaGraphExecChildGraphNodeSetParams(nodes.runs, others.fills, two.get()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphExecChildGraphNodeSetParams(nodes.runs, nodes.fills, two.get()),
            cudaErrorGraphExecUpdateFailure);
  cudaKernelNodeParams params{};
  EXPECT_EQ(cudaGraphExecKernelNodeSetParams(nodes.runs, nodes.fills, &params), cudaErrorInvalidValue);
  params.gridDim = params.blockDim = dim3(1);
  params.func = &params;
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaGraphAddKernelNode(&node, nodes.graph, nullptr, 0, &params), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGraphAddKernelNode(&node, nodes.graph, &others.fills, 1, &params), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernel(&params, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
}

TEST(GpuCapture, is_refused_where_the_runtime_refuses_it) {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace weft::testing
