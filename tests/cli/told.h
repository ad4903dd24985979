// A verb run as the command line runs it: what it returned and printed.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "weft/cli/verb.h"

namespace weft::cli {

struct Told {
  int status;
  std::string out, err;
};

inline Told told(const Verb& verb, std::vector<std::string> words) {
  words.insert(words.begin(), std::string(verb.name));
  const std::vector<std::string_view> views(words.begin(), words.end());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int status = run({&verb, 1}, views);
  return {status, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

}  // namespace weft::cli
