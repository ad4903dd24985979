// Where numbers and events go. A sink never blocks a step and never ends a run.
#pragma once

#include <memory>
#include <vector>

#include "weft/report/record.h"

namespace weft::report {

/// One place to write to. May throw: whoever calls it says so once and goes on.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual const char* name() const = 0;
  virtual void write(const StepRecord& step) = 0;
  virtual void write(const Evaluation& evaluation) = 0;
  virtual void write(const Timers&) {}
  virtual void write(const Saved&) {}
  /// Everything written so far reaches its file.
  virtual void flush() {}
};

}  // namespace weft::report
