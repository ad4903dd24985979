# Beside oneDNN, so only where it is.
if(WEFT_HAS_ONEDNN)
  weft_bench(products FILES products.cpp SEES backend ops tensor base LINKS DNNL::dnnl OpenMP::OpenMP_CXX)
endif()
weft_bench(overhead FILES overhead.cpp SEES backend ops tensor base)
weft_bench(groups FILES groups.cpp SEES backend ops tensor base)
weft_bench(few FILES few.cpp SEES backend ops tensor base LINKS OpenMP::OpenMP_CXX)
