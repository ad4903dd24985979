// Encoding speed of byte-level BPE, one thread: bench_text TOKENIZER FILE [ROUNDS]. Prints MB/s of every
// round and the median.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <vector>

#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/text/open.h"

int main(int count, char** words) {
  if (count < 3) {
    std::cerr << "usage: bench_text TOKENIZER FILE [ROUNDS] [BYTES A DOCUMENT]\n";
    return 2;
  }
  try {
    const weft::Stopwatch opening;
    const auto tokenizer = weft::open_tokenizer(weft::tokenizer_named(words[1]));
    std::cout << "opened in " << opening.seconds() * 1000 << " ms\n";
    const std::string text = weft::read_file(words[2]);
    const int rounds = count > 3 ? std::atoi(words[3]) : 5;
    const std::size_t document = count > 4 ? static_cast<std::size_t>(std::atol(words[4])) : 4096;
    std::vector<double> rates;
    for (int round = 0; round <= rounds; ++round) {
      std::size_t tokens = 0;
      const std::clock_t start = std::clock();
      for (std::size_t at = 0; at < text.size(); at += document) {
        tokens += tokenizer->encode(std::string_view(text).substr(at, document)).size();
      }
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      const double rate = static_cast<double>(text.size()) / seconds / 1e6;
      if (round > 0) rates.push_back(rate);  // the first one warms up
      std::cout << (round > 0 ? "" : "warm-up ") << rate << " MB/s, " << tokens << " tokens\n";
    }
    std::sort(rates.begin(), rates.end());
    std::cout << "median " << rates[rates.size() / 2] << " MB/s, " << rates.front() << " to " << rates.back()
              << "\n";
  } catch (const weft::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
