weft_bench(delta FILES delta_bench.cpp SEES backend tensor base)
