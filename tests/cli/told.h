// A verb run as the command line runs it: what it returned and printed.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/cli/verb.h"

namespace weft::cli {

struct Told {
  int status;
  std::string out, err;
};

inline Told run_and_hear(Args words, std::span<const Verb> known = verbs()) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int status = run(known, words);
  return {status, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

inline Told told(const Verb& verb, std::vector<std::string> words) {
  words.insert(words.begin(), std::string(verb.name));
  const std::vector<std::string_view> views(words.begin(), words.end());
  return run_and_hear(views, {&verb, 1});
}

}  // namespace weft::cli
