# The GPU backend on an emulated GPU: the same sources, compiled for a processor and watched. What the compiler inserts before every
# load and store for TSan ends in tests/support/gpu/watch.cpp instead, so a sanitized build has none of this; fibers change their stacks
# in the assembly of one kind of processor.
if(WEFT_TESTS AND NOT WEFT_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set(gpu ${CMAKE_SOURCE_DIR}/tests/support/gpu)
  set(cuda ${CMAKE_SOURCE_DIR}/weft/backend/cuda)
  add_library(weft_emulated_gpu STATIC
    ${gpu}/cards.cpp ${gpu}/copies.cpp ${gpu}/cublaslt.cpp ${gpu}/device_memory.cpp ${gpu}/fibers.cpp ${gpu}/graphs.cpp ${gpu}/launches.cpp ${gpu}/machine.cpp ${gpu}/nccl.cpp ${gpu}/nvtx.cpp
    ${gpu}/products.cpp ${gpu}/ptx.cpp ${gpu}/rooms.cpp ${gpu}/scale_modes.cpp ${gpu}/shadow.cpp ${gpu}/streams.cpp ${gpu}/warp.cpp ${gpu}/watch.cpp)
  target_include_directories(weft_emulated_gpu PUBLIC ${gpu} ${cuda}/declared)
  target_link_libraries(weft_emulated_gpu PUBLIC weft_base ${CMAKE_DL_LIBS})
  # -O1: nothing is vectorized or merged that a thread of a GPU would do alone.
  function(weft_watch)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX
      SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-O1;-g1;-fno-strict-aliasing;-fsanitize=thread;-Wno-unknown-pragmas;-Wno-tsan")
  endfunction()

  file(GLOB kernels CONFIGURE_DEPENDS ${cuda}/*.cu)
  weft_watch(${kernels})
  add_library(weft_cuda_emulated STATIC
    ${gpu}/lt_library.cpp ${gpu}/nccl_folder.cpp ${gpu}/nccl_library.cpp
    ${weft_cuda_sources} ${kernels})
  set_source_files_properties(${cuda}/blocks.cu ${cuda}/random.cu PROPERTIES COMPILE_OPTIONS
    "-O1;-g1;-fno-strict-aliasing;-fsanitize=thread;-Wno-unknown-pragmas;-Wno-tsan;-ffp-contract=off")
  target_compile_options(weft_cuda_emulated PRIVATE -Wno-unknown-pragmas)
  target_link_libraries(weft_cuda_emulated PUBLIC weft_emulated_gpu weft_backend weft_tensor weft_base)
  # Whoever links these objects opens emulated GPUs by name (weft/backend/gpus.h): they come before the library that has none.
  add_library(weft_opens_emulated OBJECT ${cuda}/open.cpp)
  target_link_libraries(weft_opens_emulated PUBLIC weft_cuda_emulated)

  weft_watch(${CMAKE_CURRENT_SOURCE_DIR}/faulty.cu ${CMAKE_CURRENT_SOURCE_DIR}/gpu_wrappers.cu ${CMAKE_CURRENT_SOURCE_DIR}/warpgroup_trial.cu)
  weft_tests(backend NAME backend_gpu SEES base tensor LINKS weft_emulated_gpu
    FILES faulty.cu gpu_faults_test.cpp gpu_graphs_test.cpp gpu_streams_test.cpp gpu_warpgroup_test.cpp gpu_wrappers.cu gpu_wrappers_test.cpp warpgroup_trial.cu)
  weft_tests(backend NAME conformance_gpu SEES base tensor ops LINKS weft_opens_emulated FILES
    conformance.cpp conformance_long.cpp cuda_bytes_test.cpp cuda_conformance.cpp cuda_copies.cpp cuda_delta.cpp cuda_device_test.cpp cuda_f8_blocks_test.cpp cuda_f8_test.cpp cuda_graphs_test.cpp cuda_groups.cpp cuda_shapes.cpp ${conformance_cases})
endif()
