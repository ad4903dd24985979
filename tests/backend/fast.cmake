# Tests of cpu/fast: a binary of their own.
weft_tests(backend NAME backend_fast SEES base tensor
  FILES fast_dispatch_test.cpp fast_drops_test.cpp fast_norm_test.cpp fast_precision_test.cpp fast_same_bits_test.cpp)
if(WEFT_TESTS)
  # TSan does not see the barriers of an OpenMP team that was built without it.
  if(WEFT_SANITIZE STREQUAL thread)
    target_compile_definitions(backend_fast_tests PRIVATE WEFT_TEAM=1)
  else()
    target_compile_definitions(backend_fast_tests PRIVATE WEFT_TEAM=3)
  endif()
endif()
# What is compiled for one instruction set must not be shared with code for all: a look at the symbols of those that this processor has.
function(weft_finds_no_leaks library)
  if(NOT WEFT_TESTS OR WEFT_SANITIZE)
    return()
  endif()
  set(objects)
  foreach(set IN ITEMS avx2 avx512 avx512_bf16 avx512_amx)
    if(TARGET weft_${library}_${set})
      list(APPEND objects $<TARGET_OBJECTS:weft_${library}_${set}>)
    endif()
  endforeach()
  if(objects)
    add_test(NAME backend_${library}:no_leaks COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} "-DOBJECTS=$<JOIN:${objects},|>"
      -P ${CMAKE_CURRENT_SOURCE_DIR}/fast_no_leaks.cmake)
    set_tests_properties(backend_${library}:no_leaks PROPERTIES LABELS fast)
  endif()
endfunction()
weft_finds_no_leaks(fast)
