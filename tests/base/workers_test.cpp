#include "weft/base/workers.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <atomic>
#include <numeric>
#include <stdexcept>

#include "tests/support/says.h"

using namespace weft;
using support::says;

TEST(PartOf, cuts_a_range_into_contiguous_parts_that_differ_by_one_at_most) {
  EXPECT_TRUE(rc::check("parts cover the range", [] {
    const auto count = *rc::gen::inRange<std::int64_t>(0, 1000);
    const int parts = *rc::gen::inRange(1, 40);
    std::int64_t at = 0;
    for (int p = 0; p < parts; ++p) {
      const Range range = part_of(count, p, parts);
      RC_ASSERT(range.begin == at);
      const std::int64_t size = range.end - range.begin;
      RC_ASSERT(size == count / parts || size == count / parts + 1);
      at = range.end;
    }
    RC_ASSERT(at == count);
  }));
}

TEST(Workers, visit_every_element_once_in_the_parts_that_were_asked_for) {
  for (const int threads : {0, 1, 3}) {
    Workers workers(threads);
    std::vector<int> visits(1001);
    std::atomic<int> calls = 0;
    workers.parallel_for(
        1001,
        [&](std::int64_t begin, std::int64_t end) {
          ++calls;
          for (auto i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        },
        7);
    EXPECT_EQ(visits, std::vector<int>(1001, 1)) << threads;
    EXPECT_EQ(calls, 7) << threads;
  }
}

TEST(Workers, cut_a_loop_in_one_part_a_thread_and_never_in_empty_ones) {
  Workers workers(3);
  std::atomic<int> calls = 0;
  const auto count = [&](std::int64_t begin, std::int64_t end) { calls += begin < end ? 1 : 1000; };
  workers.parallel_for(100, count);
  EXPECT_EQ(calls.exchange(0), 4);
  workers.parallel_for(2, count);
  EXPECT_EQ(calls.exchange(0), 2);
  workers.parallel_for(0, count);
  EXPECT_EQ(calls, 0);
}

TEST(Workers, run_loops_inside_loops) {
  Workers workers(2);
  std::atomic<std::int64_t> sum = 0;
  workers.parallel_for(
      20,
      [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) {
          workers.parallel_for(
              10, [&](std::int64_t b, std::int64_t e) { sum += e - b; }, 5);
        }
      },
      20);
  EXPECT_EQ(sum, 200);
}

TEST(Workers, throw_what_the_first_failing_part_threw_after_all_are_done) {
  Workers workers(2);
  std::atomic<int> done = 0;
  const auto body = [&](std::int64_t begin, std::int64_t) {
    ++done;
    if (begin >= 3) fail(Kind::data, "part ", begin, " is bad");
  };
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(says([&] { workers.parallel_for(8, body, 8); }), "data: part 3 is bad");
  }
  EXPECT_EQ(done, 400);
}

TEST(Workers, give_a_tasks_value_or_exception_to_its_future) {
  for (const int threads : {0, 2}) {
    Workers workers(threads);
    std::future<int> good = workers.submit([] { return 42; });
    std::future<void> bad = workers.submit([] { fail(Kind::data, "no"); });
    EXPECT_EQ(good.get(), 42);
    EXPECT_EQ(says([&] { bad.get(); }), "data: no");
  }
}

TEST(Workers, finish_what_was_handed_in_before_they_end) {
  std::atomic<int> done = 0;
  {
    Workers workers(2);
    for (int i = 0; i < 100; ++i) (void)workers.submit([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(Workers, refuse_fewer_threads_than_none) {
  EXPECT_EQ(says([] { Workers(-1); }),
            "usage: workers: -1 threads were asked for, and at least 0 were expected");
}
