// A configuration that is good, and what becomes of it when something is changed.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "weft/base/error.h"
#include "weft/train/validate.h"

namespace weft::testing {

using Change = std::function<void(TrainConfig&)>;

inline TrainConfig good() {
  TrainConfig c;
  c.model.layers = 4;
  c.model.hidden = 64;
  c.model.heads = 4;
  c.model.sequence = 64;
  c.model.vocabulary = 250;
  c.batch.micro = 2;
  c.length.iterations = 100;
  c.rate.peak = 1e-3;
  c.data.mock = true;
  return c;
}

inline void refused(const Change& change, const std::string& sentence, int world = 0) {
  TrainConfig c = good();
  change(c);
  EXPECT_THAT([&] { complete(c, world); }, ::testing::ThrowsMessage<Error>(sentence));
}

inline TrainConfig completed(const Change& change, int world = 0) {
  TrainConfig c = good();
  change(c);
  complete(c, world);
  return c;
}

}  // namespace weft::testing
