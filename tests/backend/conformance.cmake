# A case may stand beside what its operation means and refuses.
set(conformance_cases
  conformance_activation.cpp conformance_adam.cpp conformance_attention.cpp conformance_blocks.cpp conformance_delta.cpp conformance_elementwise.cpp
  conformance_embedding.cpp conformance_exact.cpp conformance_loss.cpp conformance_matmul.cpp conformance_norm.cpp
  conformance_permute.cpp conformance_random.cpp conformance_reduce.cpp conformance_routing.cpp conformance_scaled.cpp conformance_scaled_blocks.cpp conformance_softmax.cpp)
weft_tests(backend NAME conformance SEES base tensor ops FILES
  conformance.cpp conformance_devices.cpp fast_conformance.cpp ${conformance_cases})
