# weft_room(NAME SEES lower rooms... FILES sources... [LINKS libraries...]): one static library a room.
# weft_tests(ROOM FILES sources... [SEES rooms...] [LINKS libraries...] [NAME name] [LABEL labels...] [EACH n]): one test binary a room.
#   Labels say when CI runs it: `fast` (the default) also under ASan+UBSan, `threads` also under TSan, `slow` in neither.
#   The room's name is a label too. `LABEL fast threads` gives both. EACH n: of a test with many values a sanitized build takes every n-th.
# weft_bench(NAME FILES sources... SEES rooms...): a Google Benchmark program.
# weft_fuzz(NAME FILES sources... SEES rooms... [SEEDS folder]): a libFuzzer program, built by preset `asan`; its test runs
#   it for WEFT_FUZZ_SECONDS from the files in SEEDS (relative to the room's folder).
# A test binary links only the floors its room may see, so a forbidden use fails to link.

add_library(weft_flags INTERFACE)
target_include_directories(weft_flags INTERFACE ${CMAKE_SOURCE_DIR})
set(weft_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${WEFT_WERROR}>:-Werror>
  # g++ 12 warns about its own std::string (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  # The house calls with designated initializers and names only the options that differ.
  -Wno-missing-field-initializers
  # An error's place reads weft/ops/matmul.cpp:12 wherever the tree lies.
  -fmacro-prefix-map=${WEFT_TREE}=)
target_compile_options(weft_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${weft_warnings}>")  # nvcc knows others
# g++ may fill 600 MB a process before it looks for what it could free, which is an eighth of its time.
if(NOT WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=600000>)
endif()
if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
endif()
if(WEFT_FUZZ)
  target_link_options(weft_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
# libFuzzer follows the rooms; what tests do is none of its business.
set(weft_traced $<$<BOOL:${WEFT_FUZZ}>:-fsanitize=fuzzer-no-link>)

# Rooms that no loop over numbers, tokens or bytes lives in. -O3 makes nothing quicker in them and takes the compiler half as long again,
# so they are compiled for a quick build. Tests are more text than all rooms and say little that takes long, so most are not optimized.
set(weft_cold_rooms report model pipe exchange train generate plan launch jobs cli)
set(weft_quick "$<$<CONFIG:Release>:-O1>")
function(weft_compile_quickly name)
  target_compile_options(${name} PRIVATE ${weft_quick})
endfunction()
# A sanitizer's checks take the compiler up to three times as long at -O2 as at -O0, so rooms whose code tests run little of go without.
# (-O1 takes nearly as long, and clang inlines next to nothing then.)
set(weft_little_run_rooms report launch jobs cli)
# Tests with long loops of their own: oracles.
set(weft_hot_tests conformance conformance_gpu backend_attention)
set(weft_plain "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O0>")
function(weft_compile_as_hot name)
  if(WEFT_SANITIZE)
    target_compile_options(${name} PRIVATE -O2)
  endif()
endfunction()
function(weft_level_of room result)
  set(hot TRUE)
  if((WEFT_SANITIZE AND room IN_LIST weft_little_run_rooms) OR (NOT WEFT_SANITIZE AND room IN_LIST weft_cold_rooms))
    set(hot FALSE)
  endif()
  set(${result} ${hot} PARENT_SCOPE)
endfunction()
# In the other rooms it is the sources that read and write JSON: settings, descriptions, indices, never tokens or tensors.
function(weft_compile_json_quickly)
  foreach(file IN LISTS ARGN)
    file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/${file} json REGEX "^#include <nlohmann/json.hpp>" LIMIT_COUNT 1)
    if(json)
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${weft_quick}")
    endif()
  endforeach()
endfunction()

# Half of compiling a room is reading the standard's headers, fmt's and JSON's. A build by g++ for TSan reads
# them once. It says no warnings: g++ 12 takes what is in such a header for ours, and other builds say ours. (clang 14 falls over it.)
if(WEFT_READ_ONCE)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/weft_read_once.cpp CONTENT "// Only here to be compiled with the headers.\n")
  foreach(level IN ITEMS hot cold)
    add_library(weft_read_once_${level} STATIC ${CMAKE_BINARY_DIR}/weft_read_once.cpp)
    target_link_libraries(weft_read_once_${level} PRIVATE weft_flags)
    target_precompile_headers(weft_read_once_${level} PRIVATE <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <filesystem>
      <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <span> <sstream> <string> <string_view> <thread>
      <unordered_map> <utility> <vector> <nlohmann/json.hpp>)
  endforeach()
  weft_compile_quickly(weft_read_once_cold)
  weft_compile_as_hot(weft_read_once_hot)
endif()

# Much of compiling a test is reading Google Test's headers and the standard's, so WEFT_PCH reads them once for all tests. Rooms read
# their own: so each names what it includes, and g++ 12 takes the standard library in such a header for ours and warns about it.
if(WEFT_PCH AND WEFT_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/weft_precompiled.cpp CONTENT "// Only here to be compiled with the headers.\n")
  add_library(weft_precompiled STATIC ${CMAKE_BINARY_DIR}/weft_precompiled.cpp)
  target_link_libraries(weft_precompiled PRIVATE weft_flags GTest::gmock rapidcheck)
  target_precompile_headers(weft_precompiled PRIVATE <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <filesystem> <functional>
    <limits> <map> <memory> <mutex> <numeric> <optional> <span> <sstream> <string> <string_view> <utility> <vector>
    <gmock/gmock.h> <gtest/gtest.h> <rapidcheck.h>)
  target_compile_options(weft_precompiled PRIVATE ${weft_plain})
  # When the headers were made says nothing about them, and a compiler cache could not keep what came of it.
  target_compile_options(weft_precompiled PRIVATE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

# Sources of a room see the same headers and instantiate the same templates, so WEFT_JOIN compiles a few as one: a build from nothing
# is quicker, and one after a small change takes longer. together.py says which sources get along. A build with tests joins as
# one of the program alone does, so that a compiler cache has what the one made for the other.
if(WEFT_JOIN)
  set(most 24 rename)
  if(WEFT_SANITIZE)  # which shares nothing with it
    set(most 12)
  endif()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/together.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/together.cmake ${most}
    COMMAND_ERROR_IS_FATAL ANY)
  include(${CMAKE_BINARY_DIR}/together.cmake)
endif()
# How a joined source takes one of its own in: with headers of its own before, where names of it are others, so that these stay what they are.
function(weft_taken_in result name)
  set(text "#include \"${name}\"\n")
  if(weft_renamed_in_${name})
    file(STRINGS ${CMAKE_SOURCE_DIR}/${name} before REGEX "^#include ")
    string(MAKE_C_IDENTIFIER ${name} whose)
    list(JOIN before "\n" before)
    set(after)
    foreach(own IN LISTS weft_renamed_in_${name})
      string(APPEND before "\n#define ${own} ${own}_of_${whose}")
      string(APPEND after "#undef ${own}\n")
    endforeach()
    set(text "${before}\n${text}${after}")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()
function(weft_compile_together result target)
  set(left)
  set(numbers)
  foreach(file IN LISTS ARGN)
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    get_source_file_property(options ${file} COMPILE_OPTIONS)
    if(WEFT_JOIN AND DEFINED "weft_group_of_${name}" AND (NOT options OR options STREQUAL weft_quick))
      set(number "${weft_group_of_${name}}")
      if(options)
        string(APPEND number _quick)
      endif()
      list(APPEND numbers ${number})
      weft_taken_in(taken ${name})
      string(APPEND text_${number} "${taken}")
    else()
      list(APPEND left ${file})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES numbers)
  foreach(number IN LISTS numbers)
    set(joined ${CMAKE_CURRENT_BINARY_DIR}/${target}_${number}.cpp)
    file(CONFIGURE OUTPUT ${joined} CONTENT "// Made by cmake.\n${text_${number}}")
    # A name of one source may be a variable's in the next. Variables that hide variables are told all the same.
    set(options "-Wno-shadow;$<$<CXX_COMPILER_ID:GNU>:-Wshadow=local;-Wno-subobject-linkage>")
    if(number MATCHES quick)
      list(APPEND options ${weft_quick})
    endif()
    set_source_files_properties(${joined} PROPERTIES COMPILE_OPTIONS "${options}")
    list(APPEND left ${joined})
  endforeach()
  set(${result} ${left} PARENT_SCOPE)
endfunction()

# Where a processor multiplies and adds at once, a compiler makes one of both wherever it sees them, and other bits come out than on other
# processors. Only the backend, whose loops are held against each other on every kind, leaves that to the compiler.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("
#if !defined(__FMA__) && !defined(__ARM_FEATURE_FMA)
#error two roundings
#endif
int main() {}" WEFT_ADDS_PRODUCTS)

function(weft_room name)
  cmake_parse_arguments(ROOM "" "" "SEES;FILES;LINKS" ${ARGN})
  if(NOT name IN_LIST weft_cold_rooms)
    weft_compile_json_quickly(${ROOM_FILES})
  endif()
  weft_compile_together(ROOM_FILES ${name} ${ROOM_FILES})
  add_library(weft_${name} STATIC ${ROOM_FILES})
  set_target_properties(weft_${name} PROPERTIES LINKER_LANGUAGE CXX)
  list(TRANSFORM ROOM_SEES PREPEND weft_)
  target_link_libraries(weft_${name} PUBLIC weft_flags ${ROOM_SEES} PRIVATE ${ROOM_LINKS})
  weft_level_of(${name} hot)
  if(hot)
    weft_compile_as_hot(weft_${name})
  else()
    weft_compile_quickly(weft_${name})
  endif()
  if(WEFT_ADDS_PRODUCTS AND NOT name STREQUAL backend)
    target_compile_options(weft_${name} PRIVATE -ffp-contract=off)
  endif()
  target_compile_options(weft_${name} PRIVATE ${weft_traced})
  if(WEFT_READ_ONCE)
    set(level cold)
    if(hot)
      set(level hot)
    endif()
    target_compile_options(weft_${name} PRIVATE -w)
    target_precompile_headers(weft_${name} REUSE_FROM weft_read_once_${level})
  endif()
endfunction()

# Where the tree lies, for the few tests that read it: in a header, so that a compiler cache can serve the others in every clone.
if(WEFT_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/tests/support/source_dir.h CONTENT [[
// Made by cmake.
#pragma once
#define WEFT_SOURCE_DIR "@CMAKE_SOURCE_DIR@"
]] @ONLY)
endif()

# Targets that stand for many; weft_joins makes one part of another.
foreach(all IN ITEMS tests_fast tests_threads benchmarks fuzzers)
  add_custom_target(${all})
endforeach()
function(weft_joins all one)
  if(NOT TARGET ${all})
    add_custom_target(${all})
  endif()
  add_dependencies(${all} ${one})
endfunction()

# A process a test: each has its name in ctest.
function(weft_add_each_test name labels)
  gtest_discover_tests(${name}_tests TEST_PREFIX ${name}: DISCOVERY_TIMEOUT 60
    TEST_LIST ${name}_names PROPERTIES ENVIRONMENT RC_PARAMS=seed=11)
  # gtest_discover_tests loses the second of two labels, so they are set when ctest reads the tests it found.
  set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
  file(CONFIGURE OUTPUT ${labels_file} @ONLY CONTENT [[
if(@name@_names)
  set_tests_properties(${@name@_names} PROPERTIES LABELS "@labels@")
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
endfunction()

# A sanitized process takes longer to start and to end than most tests, so a few processes share a binary's tests. shard.py names the
# test that crashed one, and goes on behind it.
set(weft_shards 4)
function(weft_add_shards name labels each)
  foreach(shard RANGE 1 ${weft_shards})
    add_test(NAME ${name}:shard_${shard}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/shard.py $<TARGET_FILE:${name}_tests> ${shard} ${weft_shards} ${each})
    set_tests_properties(${name}:shard_${shard} PROPERTIES LABELS "${labels}" TIMEOUT 1800
      ENVIRONMENT "RC_PARAMS=seed=11;PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endfunction()

function(weft_tests room)
  if(NOT WEFT_TESTS)
    return()
  endif()
  cmake_parse_arguments(TESTS "" "NAME;EACH" "FILES;SEES;LINKS;LABEL" ${ARGN})
  if(NOT TESTS_NAME)
    set(TESTS_NAME ${room})
  endif()
  if(NOT TESTS_LABEL)
    set(TESTS_LABEL fast)
  endif()
  list(TRANSFORM TESTS_SEES PREPEND weft_)
  weft_compile_together(TESTS_FILES ${TESTS_NAME}_tests ${TESTS_FILES})
  add_executable(${TESTS_NAME}_tests ${TESTS_FILES})
  target_link_libraries(${TESTS_NAME}_tests PRIVATE weft_${room} ${TESTS_SEES} ${TESTS_LINKS}
    GTest::gtest_main GTest::gmock rapidcheck)
  target_include_directories(${TESTS_NAME}_tests PRIVATE ${CMAKE_BINARY_DIR}/generated)
  if(TESTS_NAME IN_LIST weft_hot_tests)  # and so not with headers that were compiled at -O0
    weft_compile_quickly(${TESTS_NAME}_tests)
    weft_compile_as_hot(${TESTS_NAME}_tests)
  else()
    target_compile_options(${TESTS_NAME}_tests PRIVATE ${weft_plain})
    if(WEFT_PCH)
      target_precompile_headers(${TESTS_NAME}_tests REUSE_FROM weft_precompiled)
    endif()
  endif()
  if(WEFT_SANITIZE)
    weft_add_shards(${TESTS_NAME} "${TESTS_LABEL};${room}" "${TESTS_EACH}")
  else()
    weft_add_each_test(${TESTS_NAME} "${TESTS_LABEL};${room}")
  endif()
  foreach(label IN LISTS TESTS_LABEL)
    weft_joins(tests_${label} ${TESTS_NAME}_tests)
  endforeach()
endfunction()

function(weft_bench name)
  if(NOT WEFT_BENCH)
    return()
  endif()
  cmake_parse_arguments(BENCH "" "" "FILES;SEES;LINKS" ${ARGN})
  list(TRANSFORM BENCH_SEES PREPEND weft_)
  add_executable(bench_${name} ${BENCH_FILES})
  target_link_libraries(bench_${name} PRIVATE ${BENCH_SEES} ${BENCH_LINKS} benchmark::benchmark weft_flags)
  weft_joins(benchmarks bench_${name})
endfunction()

function(weft_fuzz name)
  if(NOT WEFT_FUZZ)
    return()
  endif()
  cmake_parse_arguments(FUZZ "" "SEEDS" "FILES;SEES;LINKS" ${ARGN})
  list(TRANSFORM FUZZ_SEES PREPEND weft_)
  add_executable(fuzz_${name} ${FUZZ_FILES})
  target_link_libraries(fuzz_${name} PRIVATE ${FUZZ_SEES} ${FUZZ_LINKS} weft_flags)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  # What libFuzzer finds goes to the first folder; the seeds are only read.
  set(found ${CMAKE_CURRENT_BINARY_DIR}/${name}_found)
  file(MAKE_DIRECTORY ${found})
  if(FUZZ_SEEDS)
    set(FUZZ_SEEDS ${CMAKE_CURRENT_SOURCE_DIR}/${FUZZ_SEEDS})
    if(NOT IS_DIRECTORY ${FUZZ_SEEDS})
      message(FATAL_ERROR "fuzz_${name}: no folder of seeds at ${FUZZ_SEEDS}")
    endif()
  endif()
  add_test(NAME fuzz:${name} WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
    COMMAND fuzz_${name} -seed=1 -max_total_time=${WEFT_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048 ${found} ${FUZZ_SEEDS})
  set_tests_properties(fuzz:${name} PROPERTIES LABELS fuzz)
  weft_joins(fuzzers fuzz_${name})
endfunction()

# Enters a room's folder, then its tests', benchmarks' and fuzz targets' folders, where they exist.
# Rooms build under rooms/, because build/<preset>/weft is the program.
macro(weft_enter room)
  foreach(wing IN ITEMS weft tests bench fuzz)
    string(TOUPPER WEFT_${wing} wanted)
    if((wing STREQUAL "weft" OR ${wanted}) AND EXISTS ${CMAKE_SOURCE_DIR}/${wing}/${room}/CMakeLists.txt)
      string(REGEX REPLACE "^weft$" "rooms" place ${wing})
      add_subdirectory(${wing}/${room} ${CMAKE_BINARY_DIR}/${place}/${room})
    endif()
  endforeach()
endmacro()
