// A listening socket in the loop.
#pragma once

#include <functional>

#include "weft/launch/loop.h"

namespace weft::launch {

/// Hands over whoever knocks. Where there is no room, or this process has no descriptor left, the rest waits
/// in the kernel for a moment: a listener that stays ready would otherwise wake the loop again and again.
class Door {
 public:
  using Enter = std::function<void(Descriptor guest)>;
  using Room = std::function<bool()>;
  /// The listener stays the caller's, and outlives it; without has_room there always is some.
  Door(Loop& loop, int listener, Enter enter, Room has_room = {});
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

 private:
  void open();
  void take_in();
  void shut_for_a_moment();
  Loop& loop_;
  int listener_;
  Enter enter_;
  Room has_room_;
  std::uint64_t open_again_ = 0;
};

}  // namespace weft::launch
