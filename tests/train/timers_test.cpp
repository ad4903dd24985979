// Where steps spend their time.
#include "weft/train/timers.h"

#include <gtest/gtest.h>

#include "tests/support/plain_device.h"

using namespace weft;
using weft::testing::PlainDevice;

namespace {

/// A device that comes to its places when it is told to, a second after the other.
class StoppedClock final : public Instants {
 public:
  bool over(int note) override { return note <= come_to; }
  double seconds_between(int earlier, int later) override { return later - earlier; }
  void forget(int) noexcept override { ++forgotten; }

  int come_to = -1, forgotten = 0;
};

class StoppedDevice final : public PlainDevice {
 public:
  Instant instant() override { return {clock, next++}; }

  std::shared_ptr<StoppedClock> clock = std::make_shared<StoppedClock>();
  int next = 0;
};

/// So many seconds, all over.
Stretch lasting(int seconds) {
  const auto clock = std::make_shared<StoppedClock>();
  clock->come_to = seconds;
  return {Instant(clock, 0), Instant(clock, seconds)};
}

}  // namespace

TEST(StepTimers, add_up_what_a_schedule_does_by_its_kind) {
  StepTimers timers(2);
  timers.took({.what = pipe::Do::forward}, lasting(1));
  timers.took({.what = pipe::Do::backward_input}, lasting(2));
  timers.took({.what = pipe::Do::backward_weight}, lasting(4));
  timers.took({.what = pipe::Do::post_activation}, lasting(8));
  timers.took({.what = pipe::Do::recv_activation}, lasting(16));
  timers.took({.what = pipe::Do::send_gradient}, lasting(32));
  EXPECT_EQ(timers.of(StepPart::forward_compute), 1);
  EXPECT_EQ(timers.of(StepPart::backward_compute), 6);
  EXPECT_EQ(timers.of(StepPart::forward_recv), 24);
  EXPECT_EQ(timers.of(StepPart::backward_send), 32);
  timers.forget();
  EXPECT_EQ(timers.of(StepPart::forward_recv), 0);
}

TEST(StepTimers, add_up_what_an_optimizer_does) {
  StepTimers timers(1);
  timers.add(StepPart::clip, lasting(1));
  timers.add(StepPart::count_zeros, lasting(2));
  timers.add(StepPart::inner_step, lasting(4));
  EXPECT_EQ(timers.of(StepPart::optimizer), 7);
}

TEST(Laps, count_what_has_a_name_and_only_where_somebody_asks) {
  PlainDevice device;
  StepTimers timers(1), none(0);
  Laps laps(&timers, device), silent(&none, device), nobody(nullptr, device);
  while (timers.of(StepPart::clip) <= 0) laps.end(StepPart::clip);
  laps.skip();
  silent.end(StepPart::clip);
  nobody.end(StepPart::clip);
  EXPECT_EQ(none.of(StepPart::clip), 0);
}

TEST(Laps, are_those_of_the_device_when_it_comes_to_them) {
  StoppedDevice device;
  StepTimers timers(1);
  Laps laps(&timers, device);      // 0
  laps.end(StepPart::clip);        // 1, and from 2 on
  laps.skip();                     // 3
  laps.end(StepPart::clip);        // 4, and from 5 on
  laps.end(StepPart::inner_step);  // 6, and from 7 on
  EXPECT_EQ(timers.of(StepPart::clip), 0);
  device.clock->come_to = 1;
  EXPECT_EQ(timers.of(StepPart::clip), 1);
  timers.forget();
  device.clock->come_to = 5;
  EXPECT_EQ(timers.of(StepPart::clip), 1);  // the second
  EXPECT_EQ(timers.of(StepPart::inner_step), 0);
  device.clock->come_to = 7;
  EXPECT_EQ(timers.of(StepPart::inner_step), 1);
  EXPECT_EQ(timers.of(StepPart::optimizer), 2);
}

TEST(Laps, give_moments_back) {
  StoppedDevice device;
  {
    StepTimers timers(1);
    Laps laps(&timers, device);
    for (int i = 0; i < 10; ++i) laps.end(StepPart::clip);
    device.clock->come_to = 1;
    EXPECT_EQ(timers.of(StepPart::clip), 1);
    EXPECT_EQ(device.clock->forgotten, 2);
  }
  EXPECT_EQ(device.clock->forgotten, device.next);
}
