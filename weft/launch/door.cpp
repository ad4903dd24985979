// Some guests a turn, so that the loop hears others too.
#include "weft/launch/door.h"

#include "weft/launch/socket.h"

namespace weft::launch {
namespace {

constexpr int guests_a_turn = 512;
constexpr double moment = 0.1;  // seconds

}  // namespace

Door::Door(Loop& loop, int listener, Enter enter, Room has_room)
    : loop_(loop), listener_(listener), enter_(std::move(enter)), has_room_(std::move(has_room)) {
  open();
}

Door::~Door() {
  loop_.cancel(open_again_);
  loop_.forget(listener_);
}

void Door::open() {
  loop_.watch(listener_, EPOLLIN, [this](std::uint32_t) { take_in(); });
}

void Door::take_in() {
  for (int i = 0; i < guests_a_turn; ++i) {
    bool full = has_room_ && !has_room_();
    Descriptor guest = full ? Descriptor() : accept_from(listener_, full);
    if (full) return shut_for_a_moment();
    if (!guest) return;
    enter_(std::move(guest));
  }
}

void Door::shut_for_a_moment() {
  loop_.forget(listener_);
  open_again_ = loop_.after(moment, [this] { open(); });
}

}  // namespace weft::launch
