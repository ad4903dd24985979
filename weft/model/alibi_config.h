// AlibiConfig: scores that fall with the distance of query and key, by a slope of each head's own.
#pragma once

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"

namespace weft {

/// Of n heads the slopes are 2^(-power/n), 2^(-2 power/n), … 2^-power, where n is a power of two; of others,
/// those of the next smaller one, and behind them every second of the next larger one.
struct AlibiConfig {
  double power = 8;
  bool scaled = false;  // slopes are multiplied as scores are, as Falcon's
};

template <class Visitor>
void describe(Visitor& v, AlibiConfig& c) {
  v("power", c.power, OnResume::model,
    "alibi: of a power of two of heads, the last one's scores fall by 2 to minus this with every place",
    legal::positive);
  v("scaled", c.scaled, OnResume::model, "alibi: slopes are multiplied as scores are, as in Falcon");
}

}  // namespace weft
