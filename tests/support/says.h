// What a failing call says, so that a test can quote it: EXPECT_EQ(says([] { … }), "usage: rate is -1").
#pragma once

#include <string>

#include "weft/base/error.h"

namespace weft::support {

/// "KIND: sentence" of the Error that `call` throws, "nothing" where it throws none.
template <class Call>
std::string says(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return std::string(word(e.kind())) + ": " + e.what();
  }
  return "nothing";
}

}  // namespace weft::support
