// What weft said no with: expects a failure and returns its sentence.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "weft/base/error.h"

namespace weft {

template <class Body>
std::string refusal(const Body& body, Kind kind = Kind::data) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(word(e.kind()), std::string(word(kind))) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

}  // namespace weft
