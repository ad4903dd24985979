weft_bench(memory FILES memory.cpp SEES base tensor backend LINKS OpenMP::OpenMP_CXX)
