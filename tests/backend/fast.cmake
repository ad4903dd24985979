# Tests of cpu/fast: a binary of their own, and a look at the symbols of what was compiled for one instruction set.
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
if(WEFT_TESTS AND NOT WEFT_SANITIZE)
  foreach(set IN ITEMS avx2 avx512 avx512_bf16 avx512_amx)
    if(TARGET weft_fast_${set})
      list(APPEND objects $<TARGET_OBJECTS:weft_fast_${set}>)
    endif()
  endforeach()
  add_test(NAME backend_fast:no_leaks COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} "-DOBJECTS=$<JOIN:${objects},|>"
    -P ${CMAKE_CURRENT_SOURCE_DIR}/fast_no_leaks.cmake)
  set_tests_properties(backend_fast:no_leaks PROPERTIES LABELS fast)
endif()
