# weft_room(NAME SEES lower rooms... FILES sources... [LINKS libraries...]): one static library a room.
# weft_tests(ROOM FILES sources... [SEES rooms...] [LINKS libraries...] [NAME name] [LABEL labels...]): one test binary a room.
#   Labels say when CI runs it: `fast` (the default) also under ASan+UBSan, `threads` also under TSan, `slow` in neither.
#   The room's name is a label too. `LABEL fast threads` gives both.
# weft_bench(NAME FILES sources... SEES rooms...): a Google Benchmark program.
# weft_fuzz(NAME FILES sources... SEES rooms... [SEEDS folder]): a libFuzzer program, built by preset `asan`; its test runs
#   it for WEFT_FUZZ_SECONDS from the files in SEEDS (relative to the room's folder).
# A test binary links only the floors its room may see, so a forbidden use fails to link.

add_library(weft_flags INTERFACE)
target_include_directories(weft_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(weft_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${WEFT_WERROR}>:-Werror>
  # g++ 12 warns about its own std::string (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  # The house calls with designated initializers and names only the options that differ.
  -Wno-missing-field-initializers
  # An error's place reads weft/ops/matmul.cpp:12 wherever the tree lies.
  -fmacro-prefix-map=${WEFT_TREE}=)
if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
endif()
if(WEFT_FUZZ)
  target_compile_options(weft_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(weft_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Most of a quick build is reading the same standard headers again, so WEFT_PCH reads them once: for the rooms, and for their tests.
# A source with instructions of its own cannot share them.
function(weft_precompile name)
  if(WEFT_PCH)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cpp CONTENT "// Only here to be compiled with the headers.\n")
    add_library(${name} STATIC ${CMAKE_BINARY_DIR}/${name}.cpp)
    target_link_libraries(${name} PRIVATE weft_flags)
    target_precompile_headers(${name} PRIVATE ${ARGN})
  endif()
endfunction()
set(standard_headers <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <filesystem> <functional> <limits> <map> <memory> <mutex>
  <numeric> <optional> <span> <sstream> <string> <string_view> <utility> <vector>)
weft_precompile(weft_precompiled ${standard_headers})
function(weft_share_headers name from)
  if(WEFT_PCH)
    target_precompile_headers(${name} REUSE_FROM ${from})
    set_target_properties(${name} PROPERTIES PCH_WARN_INVALID OFF)
  endif()
endfunction()

# Tests are many and each runs once: what they are compiled for is a quick build.
function(weft_compile_as_tests name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

function(weft_room name)
  cmake_parse_arguments(ROOM "" "" "SEES;FILES;LINKS" ${ARGN})
  add_library(weft_${name} STATIC ${ROOM_FILES})
  set_target_properties(weft_${name} PROPERTIES LINKER_LANGUAGE CXX)
  list(TRANSFORM ROOM_SEES PREPEND weft_)
  target_link_libraries(weft_${name} PUBLIC weft_flags ${ROOM_SEES} PRIVATE ${ROOM_LINKS})
  # clang 14 crashes over headers that were compiled without OpenMP.
  if(NOT "OpenMP::OpenMP_CXX" IN_LIST ROOM_LINKS)
    weft_share_headers(weft_${name} weft_precompiled)
  endif()
endfunction()

# Where the tree lies, for the few tests that read it: in a header, so that a compiler cache can serve the others in every clone.
if(WEFT_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/tests/support/source_dir.h CONTENT [[
// Made by cmake.
#pragma once
#define WEFT_SOURCE_DIR "@CMAKE_SOURCE_DIR@"
]] @ONLY)
  weft_precompile(weft_precompiled_tests ${standard_headers} <gmock/gmock.h> <gtest/gtest.h> <rapidcheck.h>)
  if(WEFT_PCH)
    weft_compile_as_tests(weft_precompiled_tests)
    target_link_libraries(weft_precompiled_tests PRIVATE GTest::gmock rapidcheck)
  endif()
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

function(weft_tests room)
  if(NOT WEFT_TESTS)
    return()
  endif()
  cmake_parse_arguments(TESTS "" "NAME" "FILES;SEES;LINKS;LABEL" ${ARGN})
  if(NOT TESTS_NAME)
    set(TESTS_NAME ${room})
  endif()
  if(NOT TESTS_LABEL)
    set(TESTS_LABEL fast)
  endif()
  list(TRANSFORM TESTS_SEES PREPEND weft_)
  add_executable(${TESTS_NAME}_tests ${TESTS_FILES})
  target_link_libraries(${TESTS_NAME}_tests PRIVATE weft_${room} ${TESTS_SEES} ${TESTS_LINKS}
    GTest::gtest_main GTest::gmock rapidcheck)
  weft_compile_as_tests(${TESTS_NAME}_tests)
  target_include_directories(${TESTS_NAME}_tests PRIVATE ${CMAKE_BINARY_DIR}/generated)
  weft_share_headers(${TESTS_NAME}_tests weft_precompiled_tests)
  gtest_discover_tests(${TESTS_NAME}_tests TEST_PREFIX ${TESTS_NAME}: DISCOVERY_TIMEOUT 60
    TEST_LIST ${TESTS_NAME}_names PROPERTIES ENVIRONMENT RC_PARAMS=seed=11)
  # gtest_discover_tests loses the second of two labels, so they are set when ctest reads the tests it found.
  set(labels ${CMAKE_CURRENT_BINARY_DIR}/${TESTS_NAME}_labels.cmake)
  file(CONFIGURE OUTPUT ${labels} @ONLY CONTENT [[
if(@TESTS_NAME@_names)
  set_tests_properties(${@TESTS_NAME@_names} PROPERTIES LABELS "@TESTS_LABEL@;@room@")
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
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
    if(EXISTS ${CMAKE_SOURCE_DIR}/${wing}/${room}/CMakeLists.txt)
      string(REGEX REPLACE "^weft$" "rooms" place ${wing})
      add_subdirectory(${wing}/${room} ${CMAKE_BINARY_DIR}/${place}/${room})
    endif()
  endforeach()
endmacro()
