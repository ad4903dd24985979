# Beside attention runs a large product of oneDNN's: the rate that the machine is said to have.
if(TARGET DNNL::dnnl)
  weft_bench(attention FILES attention_bench.cpp SEES backend tensor base LINKS DNNL::dnnl)
endif()
weft_bench(cuts FILES cuts.cpp SEES backend ops tensor base)
