# Who opens GPUs (gpus.h): CUDA where the build has nvcc, nobody elsewhere. On the emulated GPU, where the same sources are compiled for a
# processor, it is tests/backend/cuda.cmake. The program needs neither CUDA's libraries nor a driver to start: the runtime is linked
# in, and finds the driver when it is asked for a GPU; cuBLASLt is loaded then too.
set(weft_cuda_sources attention_job.cpp device.cpp faults.cpp fixed_order.cpp graphs.cpp instants.cpp kernels.cpp nccl_lines.cpp orders.cpp products.cpp queue.cpp rows.cpp runtime.cpp staging.cpp)
list(TRANSFORM weft_cuda_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/cuda/)
set(weft_cuda_sources ${weft_cuda_sources} PARENT_SCOPE)  # for tests/backend too
if(NOT WEFT_HAS_CUDA)
  add_library(weft_no_cuda STATIC no_cuda.cpp)
  target_link_libraries(weft_no_cuda PUBLIC weft_flags weft_tensor weft_base)
  target_link_libraries(weft_backend PRIVATE weft_no_cuda)
  return()
endif()

# 20012 is a warning about what nvcc itself adds to defaulted functions.
file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cuda/*.cu)
add_library(weft_cuda STATIC ${weft_cuda_sources} cuda/open.cpp cuda/lt_library.cpp cuda/nccl_library.cpp ${kernels})
# Of one PTX nvcc makes the code of several GPUs: that of compute_80 becomes for sm_90a what that of compute_90a would (tools/gpu_kernels.py),
# in half the time. So where both are asked for, sm_90a is none of the target's kinds, but one more word to each source.
set(kinds ${WEFT_CUDA_ARCHITECTURES})
if("80" IN_LIST kinds AND "90a-real" IN_LIST kinds)
  list(REMOVE_ITEM kinds 90a-real)
  set(shared_ptx ON)
endif()
foreach(kernel IN LISTS kernels)  # one that asks for something of its own says so: tools/gpu_kernels.py reads the same lines
  file(STRINGS ${kernel} own REGEX "^// nvcc: " LIMIT_COUNT 1)
  string(REGEX REPLACE "^// nvcc: " "" own "${own}")
  separate_arguments(own)
  file(STRINGS ${kernel} apart REGEX "^// (apart|only): sm_90a" LIMIT_COUNT 1)
  if(shared_ptx AND apart)
    list(APPEND own -gencode=arch=compute_90a,code=sm_90a)
  elseif(shared_ptx)
    list(APPEND own -gencode=arch=compute_80,code=sm_90a)
  endif()
  set_source_files_properties(${kernel} PROPERTIES COMPILE_OPTIONS "${own}")
endforeach()
# These see kernels' headers.
set_source_files_properties(cuda/attention_job.cpp cuda/rows.cpp PROPERTIES LANGUAGE CUDA)
set_target_properties(weft_cuda PROPERTIES LINKER_LANGUAGE CXX CUDA_ARCHITECTURES "${kinds}"
  CUDA_RUNTIME_LIBRARY None)
target_include_directories(weft_cuda PUBLIC ${CMAKE_SOURCE_DIR}/weft/backend/cuda/native ${CMAKE_SOURCE_DIR}/weft/backend/cuda/declared)
target_include_directories(weft_cuda SYSTEM PUBLIC ${WEFT_CUDA_HEADERS})
target_compile_options(weft_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-diag-suppress=20012>")
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)  # packed tightest: drivers from CUDA 12.4 on unpack it, and this runtime asks for one of 13
  target_compile_options(weft_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
endif()
if("90a" IN_LIST WEFT_CUDA_ARCHITECTURES OR "90a-real" IN_LIST WEFT_CUDA_ARCHITECTURES)
  target_compile_definitions(weft_cuda PRIVATE WEFT_CUDA_90A)
endif()
target_link_libraries(weft_cuda PRIVATE weft_backend weft_tensor weft_base ${WEFT_CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)
target_link_libraries(weft_backend PRIVATE weft_cuda)
