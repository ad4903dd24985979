weft_tests(backend NAME backend_onednn_product SEES base tensor FILES onednn_pieces_test.cpp onednn_product_test.cpp)

# As for cpu/fast: what is compiled for one instruction set must not be shared with code for all.
if(WEFT_TESTS AND NOT WEFT_SANITIZE)
  set(product_objects)
  foreach(set IN ITEMS avx2 avx512 avx512_bf16)
    list(APPEND product_objects $<TARGET_OBJECTS:weft_product_${set}>)
  endforeach()
  add_test(NAME backend_product:no_leaks COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} "-DOBJECTS=$<JOIN:${product_objects},|>"
    -P ${CMAKE_CURRENT_SOURCE_DIR}/fast_no_leaks.cmake)
  set_tests_properties(backend_product:no_leaks PROPERTIES LABELS fast)
endif()
