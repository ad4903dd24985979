// Megatron's flags: how ranks speak to each other.
#include "weft/cli/dialect/rows.h"

namespace weft::cli::dialect {

namespace {

constexpr std::string_view overlapped = "communication is overlapped wherever it pays",
                           early = "transfers are posted as early as the schedule allows",
                           registered = "buffers are registered by the backend",
                           gathers_ahead =
                               "the next layer's weights are always gathered while one is computed",
                           further = "a further cut of weights";

}  // namespace

Group communication() {
  return {
      "How ranks speak to each other",
      {
          no_effect("overlap-param-gather", Arity::none,
                    "the processors that compute also move the weights, so they are gathered right after the "
                    "update"),
          no_effect("distributed-timeout-minutes", Arity::one,
                    "a rank that fails frees the others at once; none waits for a timeout"),
          no_effect("distributed-backend", Arity::one,
                    "ranks speak through threads, TCP or MPI, whichever started them"),
          no_effect("disable-gloo-process-groups", Arity::none, "there are no groups of another library"),
          no_effect("high-priority-stream-groups", Arity::some, "there are no streams to rank"),
          no_effect("overlap-p2p-communication-warmup-flush", Arity::none, early),
          no_effect("no-overlap-p2p-communication", Arity::none, early),
          no_effect("defer-embedding-wgrad-compute", Arity::none,
                    "a schedule with backward_weight does it for every layer"),
          no_effect("wgrad-deferral-limit", Arity::one,
                    "a schedule with backward_weight does it for every layer"),
          no_effect("tp-comm-overlap", Arity::none, overlapped),
          no_effect("tp-comm-overlap-cfg", Arity::one, overlapped),
          no_effect("ddp-average-in-collective", Arity::none,
                    "the factor is applied once, where the loss gradient starts"),
          no_effect("ddp-pad-buckets-for-high-nccl-busbw", Arity::none, "any bucket gives the same"),
          no_effect("overlap-param-gather-with-optimizer-step", Arity::none,
                    "weights are gathered right after the update"),
          no_effect("align-grad-reduce", Arity::none, "a rank reduces when its gradients are ready"),
          no_effect("align-param-gather", Arity::none, "a rank gathers when its weights are ready"),
          cannot("tensor-parallel-num-weight-shards", Arity::one, further),
          no_effect("init-model-with-meta-device", Arity::none, "no rank ever holds more than its own part"),
          no_effect("fsdp-double-buffer", Arity::none, gathers_ahead),
          no_effect("fsdp-manual-registration", Arity::none, registered),
          no_effect("no-use-layer-wise-param-layout", Arity::none, "shards ignore parameter borders"),
          no_effect("use-nccl-ub", Arity::none, registered),
          no_effect("no-align-grad-reduce", Arity::none, "a rank reduces when its gradients are ready"),
          no_effect("disable-align-grad-reduce", Arity::none, "a rank reduces when its gradients are ready"),
          no_effect("no-align-param-gather", Arity::none, "a rank gathers when its weights are ready"),
          no_effect("local-rank", Arity::one, "who starts a rank tells it its place"),
          no_effect("lazy-mpu-init", Arity::none, "nothing is set up later"),
          no_effect("nccl-communicator-config-path", Arity::one,
                    "NCCL is opened with its own settings, which its environment changes"),
          no_effect("use-sharp", Arity::none, "NCCL finds it by its environment"),
          no_effect("sharp-enabled-group", Arity::one, "NCCL finds it by its environment"),
          no_effect("distributed-timeout-seconds-after-init", Arity::one,
                    "a rank that fails frees the others at once; none waits for a timeout"),
          no_effect("pipeline-model-parallel-comm-backend", Arity::one,
                    "ranks speak through threads, TCP or MPI, whichever started them, and GPUs by NCCL"),
          no_effect("no-tp-comm-bulk-wgrad", Arity::none, overlapped),
          no_effect("disable-tp-comm-bulk-wgrad", Arity::none, overlapped),
          no_effect("no-tp-comm-bulk-dgrad", Arity::none, overlapped),
          no_effect("disable-tp-comm-bulk-dgrad", Arity::none, overlapped),
          no_effect("no-tp-comm-overlap-ag", Arity::none, overlapped),
          no_effect("disable-tp-comm-overlap-ag", Arity::none, overlapped),
          no_effect("no-tp-comm-overlap-rs", Arity::none, overlapped),
          no_effect("disable-tp-comm-overlap-rs", Arity::none, overlapped),
          no_effect("no-tp-comm-split-ag", Arity::none, overlapped),
          no_effect("disable-tp-comm-split-ag", Arity::none, overlapped),
          no_effect("no-tp-comm-split-rs", Arity::none, overlapped),
          no_effect("disable-tp-comm-split-rs", Arity::none, overlapped),
          no_effect("tp-comm-overlap-rs-dgrad", Arity::none, overlapped),
          no_effect("tp-comm-bootstrap-backend", Arity::one, overlapped),
          no_effect("use-ring-exchange-p2p", Arity::none, early),
          no_effect("ddp-reduce-scatter-with-fp32-accumulation", Arity::none,
                    "what travels in bf16 is added in f32"),
          no_effect("megatron-fsdp-version", Arity::one, "there is one implementation"),
          no_effect("disable-symmetric-registration", Arity::none, registered),
          no_effect("create-all-gather-group", Arity::none, overlapped),
          no_effect("no-gradient-reduce-div-fusion", Arity::none,
                    "the factor is applied once, where the loss gradient starts"),
          no_effect("suggested-communication-unit-size", Arity::one, gathers_ahead),
          no_effect("keep-fp8-transpose-cache", Arity::none,
                    "weights are rounded to eight bits with every use"),
          cannot("fake-process-group", Arity::none,
                 "ranks that do not speak: weft plan tells what they would need"),
          cannot("gtp-remat-reduce-scatter-with-fp32-accumulation", Arity::none, further),
          cannot("gtp-remat-nccl-ub", Arity::none, further),
          cannot("gtp-expert-remat-nccl-ub", Arity::none, further),
          cannot("gtp-remat-opt-in-modules", Arity::some, further),
          no_effect("megatron-fsdp-enable-fine-grained-param-gather", Arity::none, gathers_ahead),
          no_effect("megatron-fsdp-max-pool-double-buffer", Arity::none, gathers_ahead),
          no_effect("fsdp-db-use-persist-buf-on-alloc-fail", Arity::none,
                    "memory is pooled and its amount known"),
          no_effect("symmetric-ar-type", Arity::one, "NCCL chooses how it adds"),
          no_effect("high-priority-a2a-comm-stream", Arity::none, "there are no streams to rank"),
      }};
}

}  // namespace weft::cli::dialect
