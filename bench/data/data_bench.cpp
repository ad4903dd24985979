// Times what the data room does, once a process, so that a cold start is cold. indices.py runs it in turn
// with megatron-core.
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/data/open.h"
#include "weft/data/sampler.h"
#include "weft/data/tokenizer_identity.h"

namespace {

using namespace weft;
using namespace weft::data;

long peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

DataRequest request_of(const std::vector<std::string>& args) {
  DataRequest request;
  request.sizes = {std::stoll(args.at(2)), 0, 0};
  request.split = "1,0,0";
  request.cache_path = args.at(3);
  request.paths.shared = parse_blend({args.data() + 4, args.size() - 4}, "data");
  TokenizerFlags flags;
  flags.type = "NullTokenizer";
  flags.vocab_size = 65000;
  request.tokenizer = tokenizer_identity(flags, Upstream::core_0_16);
  return request;
}

Datasets open(const DataRequest& request, const std::vector<std::string>& args) {
  return open_gpt_datasets(request, {.sequence_length = std::stoll(args.at(1)), .eod = 65000});
}

// index SEQUENCE SAMPLES CACHE DATA…: seconds to data that can be read, cold or warm as the cache is.
void index(const std::vector<std::string>& args) {
  const long before = peak_mib();
  const Stopwatch watch;
  const Datasets sets = open(request_of(args), args);
  const double seconds = watch.seconds();
  std::cout << "{\"seconds\": " << seconds << ", \"peak_mib\": " << peak_mib()
            << ", \"grown_mib\": " << peak_mib() - before << ", \"samples\": " << sets[Split::train]->size()
            << "}\n";
}

// sample SEQUENCE SAMPLES CACHE DATA…: the median of samples that lie in the page cache.
void sample(const std::vector<std::string>& args) {
  const Datasets sets = open(request_of(args), args);
  const auto& set = *sets[Split::train];
  std::vector<double> micros;
  std::int64_t sum = 0;
  for (int round = 0; round < 2; ++round) {  // the first one warms the cache
    micros.clear();
    for (std::int64_t i = 0; i < 20000; ++i) {
      const Stopwatch watch;
      const Sample one = set.get(i % set.size());
      micros.push_back(watch.seconds() * 1e6);
      sum += one[Field::tokens][0];
    }
  }
  std::sort(micros.begin(), micros.end());
  std::cout << "{\"median_us\": " << micros[micros.size() / 2]
            << ", \"p95_us\": " << micros[micros.size() * 95 / 100] << ", \"sum\": " << sum << "}\n";
}

// keyed SEQUENCE SAMPLES CACHE DATA…: seconds from nothing to the first batch of 512 samples.
void keyed(const std::vector<std::string>& args) {
  const Stopwatch watch;
  DataRequest request = request_of(args);
  request.order = DataOrder::keyed;
  const Datasets sets = open(request, args);
  std::int64_t sum = 0;
  for (const std::int64_t i : sequential_sampler(sets[Split::train]->size())->at(0, {.global_batch = 512}))
    sum += sets[Split::train]->get(i)[Field::tokens][0];
  std::cout << "{\"seconds\": " << watch.seconds() << ", \"peak_mib\": " << peak_mib() << ", \"sum\": " << sum
            << "}\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    if (args.size() < 5) fail(Kind::usage, "bench_data: index|sample|keyed SEQUENCE SAMPLES CACHE DATA...");
    if (args[0] == "index") index(args);
    if (args[0] == "sample") sample(args);
    if (args[0] == "keyed") keyed(args);
  } catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
  return 0;
}
