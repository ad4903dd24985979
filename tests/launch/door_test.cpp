#include "weft/launch/door.h"

#include <gtest/gtest.h>

#include <vector>

#include "weft/launch/socket.h"

using namespace weft;
using namespace weft::launch;

namespace {

Descriptor knock(const Descriptor& listener) {
  std::string why;
  return connect_to({"127.0.0.1", port_of(listener)}, why);
}

}  // namespace

TEST(Door, lets_in_whoever_knocks) {
  Loop loop;
  const Descriptor listener = listen_anywhere();
  std::vector<Descriptor> guests;
  const Door door(loop, listener.get(), [&](Descriptor guest) {
    guests.push_back(std::move(guest));
    if (guests.size() == 3) loop.stop();
  });
  const Descriptor one = knock(listener), two = knock(listener), three = knock(listener);
  loop.after(30, [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(guests.size(), 3U);
}

TEST(Door, waits_where_there_is_no_room_and_does_not_ask_again_and_again) {
  Loop loop;
  const Descriptor listener = listen_anywhere();
  int asked = 0, entered = 0;
  bool room = false;
  const Door door(
      loop, listener.get(),
      [&](const Descriptor&) {
        ++entered;
        loop.stop();
      },
      [&] {
        ++asked;
        return room;
      });
  const Descriptor guest = knock(listener);
  loop.after(0.25, [&] {
    EXPECT_EQ(entered, 0);
    EXPECT_LE(asked, 3);
    room = true;
  });
  loop.after(30, [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(entered, 1);
}
