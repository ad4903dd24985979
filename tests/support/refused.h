// What weft said when it said no.
#pragma once

#include <string>

#include "weft/base/error.h"

namespace weft {

/// The sentence of the Error that act throws; "" if it threw none.
template <class Act>
std::string refused(Act&& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace weft
