# Tests of fused attention, a binary of their own.
weft_tests(backend NAME backend_attention SEES base tensor
  FILES attention_example.cpp attention_exact_test.cpp attention_test.cpp)
