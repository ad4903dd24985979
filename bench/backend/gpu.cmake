# What bench/gpu/run measures kernels by, on any device.
add_executable(bench_gpu_kernels ${CMAKE_SOURCE_DIR}/bench/gpu/kernels.cpp)
target_link_libraries(bench_gpu_kernels PRIVATE weft_backend weft_tensor weft_base weft_flags)
set_target_properties(bench_gpu_kernels PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench/gpu)
weft_joins(benchmarks bench_gpu_kernels)
