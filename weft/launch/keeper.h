// Whatever kills the launcher, what its workers started ends too.
#pragma once

#include <sys/types.h>

#include "weft/base/descriptor.h"

namespace weft::launch {

/// A small process beside the launcher that knows the workers' process groups and kills them when the
/// launcher is gone: the kernel ends a launcher's children by itself, and not its children's.
///
/// It sits in a session of its own, where no Ctrl-C or kill of the launcher's group reaches it, and holds no
/// descriptor but the one that tells it. One that somebody kills is missed by nobody.
class Keeper {
 public:
  /// Fails with Kind::device where there is no process to be had.
  Keeper();
  /// Lets what it knows live.
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Where a worker says its group, so that it is known before it can start anybody.
  int door() const { return tell_.get(); }
  /// A group that is to be killed, or its negative; async-signal-safe.
  static void tell(int door, pid_t group);
  /// Before its leader is reaped: afterwards the number may be another's.
  void forget(pid_t group) const { tell(door(), -group); }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = -1;
  Descriptor tell_;
};

}  // namespace weft::launch
