// Values as text: as Python's str() and repr() have them, and as JSON.
#pragma once

#include <string>

#include "weft/text/jinja/work.h"

namespace weft::jinja {

/// What {{ value }} writes.
std::string printed(Work& work, const Value& value);
/// Within containers: texts in quotes.
std::string repr(Work& work, const Value& value);
/// A float as Python prints it: 1.0, 1e+16, inf.
std::string float_text(double value);

/// json.dumps of Python.
struct JsonStyle {
  bool ascii = false, sorted = false;
  bool lines = false;  // one line an item, with `indent` a level
  std::string indent = {};
  std::string between = ", ", behind_key = ": ";
};
std::string json_text(Work& work, const Value& value, const JsonStyle& style);

}  // namespace weft::jinja
