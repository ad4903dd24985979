// A model by the fewest settings, and what it is refused with.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "weft/base/error.h"
#include "weft/model/config.h"

namespace weft::testing {

inline ModelConfig small() {
  ModelConfig m;
  m.layers = 2;
  m.hidden = 256;
  m.heads = 4;
  m.sequence = 64;
  m.vocabulary = 1000;
  return m;
}

inline ModelConfig small_with(const std::function<void(ModelConfig&)>& change) {
  ModelConfig m = small();
  change(m);
  return m;
}

inline void refused(const ModelConfig& m, const std::string& sentence) {
  const auto completing = [&m] {
    ModelConfig copy = m;
    complete(copy);
  };
  EXPECT_THAT(completing, ::testing::ThrowsMessage<Error>(sentence));
}

}  // namespace weft::testing
