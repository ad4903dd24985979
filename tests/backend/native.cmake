# The suite on a GPU of this machine: built in preset cuda, and run by bench/gpu/run. Where there is no GPU it says what the program says.
weft_tests(backend NAME conformance_cuda SEES base tensor ops LINKS weft_cuda LABEL gpu FILES
  conformance.cpp conformance_long.cpp cuda_groups.cpp cuda_native.cpp cuda_shapes.cpp native_launch.cu ${conformance_cases})
