// Mistakes between streams, in calls of libraries and between ranks, each of which the emulated GPU must
// find.
#include <cublasLt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <memory>
#include <thread>

#include "tests/backend/faulty.h"
#include "tests/backend/gpu_trial.h"

namespace weft::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

struct TwoStreams {
  cudaStream_t a = nullptr, b = nullptr;
  cudaEvent_t done = nullptr;
  TwoStreams() {
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  }
  ~TwoStreams() { cudaEventDestroy(done); }
  TwoStreams(const TwoStreams&) = delete;
  TwoStreams& operator=(const TwoStreams&) = delete;
};

void fill_and_copy(const TwoStreams& s, const Array& x, const Array& out, bool with_event) {
  cudaEventRecord(s.done, s.a);
  cudaStreamWaitEvent(s.b, s.done, 0);
  fill(s.a, x.data(), 3, 1000);
  cudaEventRecord(s.done, s.a);
  if (with_event) cudaStreamWaitEvent(s.b, s.done, 0);
  copy(s.b, out.data(), x.data(), 1000);
  cudaEventRecord(s.done, s.b);
  cudaStreamWaitEvent(s.a, s.done, 0);
}

void between_streams(bool with_event, bool in_graph) {
  const TwoStreams s;
  const Array x(1000, s.a), out(1000, s.a);
  cudaStreamSynchronize(s.a);
  if (in_graph) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal);
    fill_and_copy(s, x, out, with_event);
    cudaStreamEndCapture(s.a, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    for (int i = 0; i < 3; ++i) cudaGraphLaunch(exec, s.a);
  } else {
    fill_and_copy(s, x, out, with_event);
  }
  const auto is = out.read();
  if (with_event) {
    EXPECT_THAT(is, Each(3));
  }
}

TEST(GpuStreams, with_events_are_clean) {
  for (const bool in_graph : {false, true})
    EXPECT_THAT(found_by([&] { between_streams(true, in_graph); }), Each(std::string()));
}

// From a stream to another by a third, which has nothing to do itself.
void by_a_third_stream(bool waits) {
  const TwoStreams s;
  const TwoStreams third;
  const Array x(1000, s.a), out(1000, s.a);
  cudaStreamSynchronize(s.a);
  fill(s.a, x.data(), 3, 1000);
  cudaEventRecord(s.done, s.a);
  if (waits) cudaStreamWaitEvent(third.a, s.done, 0);
  cudaEventRecord(third.done, third.a);
  cudaStreamWaitEvent(s.b, third.done, 0);
  copy(s.b, out.data(), x.data(), 1000);
  cudaStreamSynchronize(s.b);
  cudaEventRecord(s.done, s.b);
  cudaStreamWaitEvent(s.a, s.done, 0);
  const auto is = out.read();
  if (waits) {
    EXPECT_THAT(is, Each(3));
  }
}

TEST(GpuStreams, wait_for_what_an_event_of_another_has_waited_for) {
  EXPECT_THAT(found_by([] { by_a_third_stream(true); }), Each(std::string()));
  EXPECT_THAT(found_by([] { by_a_third_stream(false); }),
              Each(HasSubstr("with no order between their streams")));
}

TEST(GpuStreams, without_an_event_are_found) {
  for (const bool in_graph : {false, true})
    EXPECT_THAT(found_by([&] { between_streams(false, in_graph); }),
                Each(HasSubstr("with no order between their streams")));
}

void freed_while_used(bool ordered) {
  const TwoStreams s;
  const Array out(1000, s.b);
  auto x = std::make_unique<Array>(1000, s.a);
  fill(s.a, x->data(), 3, 1000);
  cudaEventRecord(s.done, s.a);
  cudaStreamWaitEvent(s.b, s.done, 0);
  copy(s.b, out.data(), x->data(), 1000);
  cudaEventRecord(s.done, s.b);
  if (ordered) cudaStreamWaitEvent(s.a, s.done, 0);
  x.reset();
}

TEST(GpuStreams, do_not_free_what_another_one_reads) {
  EXPECT_THAT(found_by([] { freed_while_used(true); }), Each(std::string()));
  EXPECT_THAT(found_by([] { freed_while_used(false); }), Each(::testing::Not(std::string())));
}

/// out [3, 2] = a [3, 5] b [5, 2] + bias, all by rows: to a library by columns that is out^T = b^T a^T.
struct SmallProduct {
  std::int64_t lda = 5;
  bool tells_alignment = true;
  cudaDataType out_type = CUDA_R_32F;

  cublasStatus_t operator()() const {
    const std::vector<float> a = counted(15), b = counted(14), bias = counted(2);
    const Array a_(a), b_(b), bias_(bias), out(6);  // b starts 16 bytes later
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t la, lb, lo;
    const float one = 1, zero = 0;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const float* bias_at = bias_.data();
    cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias_at, sizeof bias_at);
    cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, 2, 5, 2);
    cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, 5, 3, lda);
    cublasLtMatrixLayoutCreate(&lo, out_type, 2, 3, 2);
    const auto algo = algorithm(desc, lb, la, lo);
    const auto status = cublasLtMatmul(nullptr, desc, &one, b_.data() + 4, lb, a_.data(), la, &zero,
                                       out.data(), lo, out.data(), lo, &algo, nullptr, 0, nullptr);
    if (status == CUBLAS_STATUS_SUCCESS && lda == 5) look_at(out.read(), a, b, bias);
    for (const auto layout : {la, lb, lo}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(desc);
    return status;
  }
  cublasLtMatmulAlgo_t algorithm(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                 cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t out) const {
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    int algos = 0;
    const std::uint32_t alignment = 16;
    cublasLtMatmulPreferenceCreate(&preference);
    for (int i = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
         tells_alignment && i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; ++i)
      cublasLtMatmulPreferenceSetAttribute(preference, cublasLtMatmulPreferenceAttributes_t(i), &alignment,
                                           4);
    cublasLtMatmulAlgoGetHeuristic(nullptr, desc, a, b, out, out, preference, 1, &found, &algos);
    cublasLtMatmulPreferenceDestroy(preference);
    return found.algo;
  }
  static void look_at(const std::vector<float>& out, const std::vector<float>& a, const std::vector<float>& b,
                      const std::vector<float>& bias) {
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        float right = bias[j];
        for (std::size_t k = 0; k < 5; ++k) right += a[i * 5 + k] * b[4 + k * 2 + j];
        EXPECT_EQ(out[i * 2 + j], right);
      }
  }
};

TEST(GpuProducts, take_descriptors_at_their_word) {
  EXPECT_THAT(found_by([] { SmallProduct()(); }), Each(std::string()));
  EXPECT_THAT(found_by([] { SmallProduct{.lda = 6}(); }), Each(HasSubstr("outside of what was allocated")));
  EXPECT_THAT(found_by([] { SmallProduct{.tells_alignment = false}(); }),
              Each(HasSubstr("is not aligned as the preference promised")));
}

TEST(GpuProducts, are_refused_where_the_library_refuses_them) {
  EXPECT_EQ(SmallProduct{.out_type = CUDA_R_16BF}(), CUBLAS_STATUS_NOT_SUPPORTED);
  cublasLtMatrixLayout_t layout;
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 4, 4, 3), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 0, 4, 4), CUBLAS_STATUS_INVALID_VALUE);
  cublasLtMatmulDesc_t desc;
  EXPECT_EQ(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_16F), CUBLAS_STATUS_NOT_SUPPORTED);
}

void two_ranks(bool same_order) {
  ncclComm_t comms[2];
  ncclCommInitAll(comms, 2, nullptr);
  cudaStream_t streams[2];
  for (auto& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  const Array x0(std::vector<float>{1, 2}, streams[0]), x1(std::vector<float>{10, 20}, streams[1]);
  const Array all0(4, streams[0]), all1(4, streams[1]);
  ncclAllReduce(x0.data(), x0.data(), 2, ncclFloat32, ncclSum, comms[0], streams[0]);
  if (!same_order) ncclAllGather(x1.data(), all1.data(), 2, ncclFloat32, comms[1], streams[1]);
  ncclAllReduce(x1.data(), x1.data(), 2, ncclFloat32, ncclSum, comms[1], streams[1]);
  ncclAllGather(x0.data(), all0.data(), 2, ncclFloat32, comms[0], streams[0]);
  if (same_order) ncclAllGather(x1.data(), all1.data(), 2, ncclFloat32, comms[1], streams[1]);
  if (same_order) {
    EXPECT_THAT(all0.read(), ::testing::ElementsAre(11, 22, 11, 22));
  }
  cudaDeviceSynchronize();
  for (const ncclComm_t comm : comms) ncclCommDestroy(comm);
}

TEST(GpuRanks, must_call_in_one_order) {
  emulated::set_patience(0.05);
  EXPECT_THAT(found_by([] { two_ranks(true); }), Each(std::string()));
  EXPECT_THAT(found_by([] { two_ranks(false); }), Each(HasSubstr("collective 0: rank ")));
  emulated::set_patience(2);
}

/// Two ranks that are threads, each with a stream of its own; the second may leave early.
void two_threads(int calls_of_second) {
  ncclComm_t comms[2];
  ncclCommInitAll(comms, 2, nullptr);
  float sums[2] = {0, 0};
  const auto rank = [&](int r, int calls) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    const Array x(std::vector<float>{1}, stream);
    for (int i = 0; i < calls; ++i)
      ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, comms[r], stream);
    sums[r] = x.read()[0];
  };
  std::thread other([&] { rank(1, calls_of_second); });
  rank(0, 10);
  other.join();
  if (calls_of_second == 10) {
    EXPECT_EQ(sums[0], 1024);
  }
  for (const ncclComm_t comm : comms) ncclCommDestroy(comm);
}

TEST(GpuRanks, may_be_threads) {
  EXPECT_THAT(found_by([] { two_threads(10); }), Each(std::string()));
}

TEST(GpuRanks, must_all_come) {
  emulated::set_patience(0.05);
  emulated::set_pace(emulated::lazy);
  two_threads(9);
  EXPECT_THAT(emulated::take_reports(), ::testing::Contains(HasSubstr("ranks that do not come")));
  emulated::set_patience(2);
}

// As NVIDIA's: two that know the time, and have been reached.
TEST(GpuEvents, know_the_time_between_them_where_they_may) {
  emulated::set_pace(emulated::lazy);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEvent_t from = nullptr, to = nullptr, whether = nullptr;
  cudaEventCreateWithFlags(&from, cudaEventDefault);
  cudaEventCreateWithFlags(&to, cudaEventDefault);
  cudaEventCreateWithFlags(&whether, cudaEventDisableTiming);
  float passed = -1;
  EXPECT_EQ(cudaEventElapsedTime(&passed, from, to),
            cudaErrorInvalidResourceHandle);  // of none that was recorded
  const Array x(1000, stream);
  cudaEventRecord(from, stream);
  fill(stream, x.data(), 3, 1000);
  cudaEventRecord(to, stream);
  cudaEventRecord(whether, stream);
  EXPECT_EQ(cudaEventElapsedTime(&passed, from, to), cudaErrorNotReady);
  cudaStreamSynchronize(stream);
  EXPECT_EQ(cudaEventElapsedTime(&passed, from, to), cudaSuccess);
  EXPECT_GT(passed, 0);
  EXPECT_EQ(cudaEventElapsedTime(&passed, from, whether), cudaErrorInvalidResourceHandle);
  for (const cudaEvent_t event : {from, to, whether}) cudaEventDestroy(event);
}

// A copy that comes late shows it: the page is read when the device gets there.
TEST(GpuStreams, read_a_pinned_page_when_they_get_there) {
  emulated::set_pace(emulated::lazy);
  void* page = nullptr;
  cudaMallocHost(&page, 4);
  const Array x(1);
  const auto send = [&](bool waits) {
    *static_cast<float*>(page) = 1;
    cudaMemcpyAsync(x.data(), page, 4, cudaMemcpyHostToDevice, nullptr);
    if (waits) cudaStreamSynchronize(nullptr);
    *static_cast<float*>(page) = 2;
    return x.read()[0];
  };
  EXPECT_EQ(send(true), 1);
  EXPECT_EQ(send(false), 2);
  cudaFreeHost(page);
}

}  // namespace
}  // namespace weft::testing
