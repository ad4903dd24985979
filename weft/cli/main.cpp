// weft: hands the command line to a verb.
#include <string_view>
#include <vector>

#include "weft/cli/verb.h"

int main(int count, char** words) {
  const std::vector<std::string_view> args(words + 1, words + count);
  return weft::cli::run(weft::cli::verbs(), args);
}
