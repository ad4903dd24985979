// Where steps spend their time.
#include "weft/train/timers.h"

#include <gtest/gtest.h>

using namespace weft;

TEST(StepTimers, add_up_what_a_schedule_does_by_its_kind) {
  StepTimers timers(2);
  timers.took({.what = pipe::Do::forward}, 1);
  timers.took({.what = pipe::Do::backward_input}, 2);
  timers.took({.what = pipe::Do::backward_weight}, 4);
  timers.took({.what = pipe::Do::post_activation}, 8);
  timers.took({.what = pipe::Do::recv_activation}, 16);
  timers.took({.what = pipe::Do::send_gradient}, 32);
  EXPECT_EQ(timers.of(StepPart::forward_compute), 1);
  EXPECT_EQ(timers.of(StepPart::backward_compute), 6);
  EXPECT_EQ(timers.of(StepPart::forward_recv), 24);
  EXPECT_EQ(timers.of(StepPart::backward_send), 32);
  timers.forget();
  EXPECT_EQ(timers.of(StepPart::forward_recv), 0);
}

TEST(Laps, count_what_has_a_name_and_only_where_somebody_asks) {
  StepTimers timers(1), none(0);
  Laps laps(&timers), silent(&none), nobody(nullptr);
  while (timers.of(StepPart::clip) <= 0) laps.end(StepPart::clip);
  laps.skip();
  silent.end(StepPart::clip);
  nobody.end(StepPart::clip);
  EXPECT_EQ(none.of(StepPart::clip), 0);
}
