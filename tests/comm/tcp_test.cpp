// What ranks say over TCP, and how they meet and part.
#include "weft/comm/tcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "tests/support/all_words.h"
#include "tests/support/says.h"
#include "tests/support/slow_names.h"
#include "tests/support/tcp_ranks.h"
#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/base/pulse.h"
#include "weft/comm/tcp_meeting.h"
#include "weft/comm/threads.h"

using namespace weft;
using ::testing::HasSubstr;
using weft::support::SlowNames;
using weft::testing::Bytes;
using weft::testing::Door;
using weft::testing::loopback;
using weft::testing::message_at_hand;
using weft::testing::PlainDevice;
using weft::testing::run_over_tcp;
using weft::testing::speak;

namespace {

int knock(const Door& door) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in at = loopback(door.port);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  return fd;
}

/// A device may end before its communicator does, so a failure must give back what words held.
struct NothingLeft {
  const PlainDevice& device;
  ~NothingLeft() { EXPECT_EQ(device.memory().total, 0); }
};

std::vector<Bytes> of_threads(int ranks) {
  std::vector<Bytes> out(static_cast<std::size_t>(ranks));
  run_as_threads(ranks, [&](Communicator& world) { out[std::size_t(world.rank())] = speak(world); });
  return out;
}

}  // namespace

TEST(Tcp, gives_the_bits_of_threads) {
  for (const int ranks : {1, 2, 3, 5}) {
    const Door door;
    std::vector<Bytes> out(static_cast<std::size_t>(ranks));
    const auto said = run_over_tcp(
        door, ranks, [&](Communicator& world) { out[std::size_t(world.rank())] = speak(world); });
    EXPECT_THAT(said, ::testing::Each(""));
    EXPECT_EQ(out, of_threads(ranks));
  }
}

TEST(Tcp, a_failing_rank_frees_the_others) {
  const Door door;
  const auto said = run_over_tcp(door, 3, [](Communicator& world) {
    PlainDevice device;
    const NothingLeft nothing{device};
    Pending pending = world.all_reduce(empty(device, {1 << 16}), Reduce::sum);
    if (world.rank() == 1) fail(Kind::data, "sample 17 is torn");
    pending.wait();
    world.barrier();
  });
  EXPECT_THAT(said[1], HasSubstr("sample 17 is torn"));
  EXPECT_THAT(said[0], HasSubstr("is gone: "));
  EXPECT_THAT(said[2], HasSubstr("is gone: "));
}

// Who waits for something else than a word, as for a GPU, asks in between.
TEST(Tcp, who_asks_whether_all_are_there_hears_who_is_gone) {
  const Door door;
  const auto said = run_over_tcp(door, 3, [](Communicator& world) {
    world.check();
    world.barrier();
    if (world.rank() == 1) fail(Kind::data, "sample 17 is torn");
    for (const Deadline late(60); !late.passed();) world.check();
  });
  EXPECT_EQ(said[1], "sample 17 is torn");
  EXPECT_THAT(said[0], HasSubstr("rank 1 is gone: "));
  EXPECT_THAT(said[2], HasSubstr(" is gone: "));
}

TEST(Tcp, refuses_messages_of_different_lengths) {
  const Door door;
  const auto said = run_over_tcp(door, 2, [](Communicator& world) {
    PlainDevice device;
    world.broadcast(empty(device, {world.rank() == 0 ? 4 : 6}), 0).wait();
  });
  EXPECT_THAT(said[1], HasSubstr("broadcast: 24 bytes are expected from rank 0, which sends 16"));
}

TEST(Tcp, a_failure_is_what_every_later_word_says) {
  const Door door;
  const auto said = run_over_tcp(door, 2, [](Communicator& world) {
    PlainDevice device;
    if (world.rank() == 0) return world.broadcast(empty(device, {4}), 0).wait();
    EXPECT_THROW(world.broadcast(empty(device, {6}), 0).wait(), Error);
    world.barrier();
  });
  EXPECT_THAT(said[1], HasSubstr("broadcast: 24 bytes are expected from rank 0, which sends 16"));
}

// As a checkpoint is written while training goes on.
TEST(Tcp, two_threads_of_a_rank_speak_over_a_circle_each) {
  const Door door;
  const auto said = run_over_tcp(door, 3, [](Communicator& world) {
    const auto beside = world.split(0, world.rank());
    PlainDevice device;
    std::jthread saves([&beside] {
      for (int i = 0; i < 100; ++i) {
        const std::string mine = text("rank ", beside->rank(), " has ", i);
        EXPECT_EQ(beside->tell_all(mine)[std::size_t(beside->rank())], mine);
      }
    });
    for (int i = 0; i < 100; ++i) {
      const Tensor x = from_host(device, {3000}, std::vector<float>(3000, float(world.rank() + i)));
      world.all_reduce(x, Reduce::sum).wait();
      EXPECT_THAT(to_host<float>(x), ::testing::Each(float(3 + 3 * i)));
    }
  });
  EXPECT_THAT(said, ::testing::Each(""));
}

TEST(Tcp, strangers_at_the_door_change_nothing) {
  const Door door;
  const int silent = knock(door), noisy = knock(door), gone = knock(door);
  const std::string noise(1000, 'x');
  EXPECT_EQ(send(noisy, noise.data(), noise.size(), MSG_NOSIGNAL), 1000);
  close(gone);
  const auto said = run_over_tcp(door, 3, [](Communicator& world) { world.barrier(); });
  EXPECT_THAT(said, ::testing::Each(""));
  close(silent);
  close(noisy);
}

TEST(Tcp, names_those_who_have_not_come) {
  const Door door;
  TcpSeat seat = door.seat(0, 3);
  seat.patience = 0.1;
  std::string said;
  EXPECT_EQ(run_under_tcp(
                seat, [](Communicator&) {},
                [&] {
                  said = message_at_hand();
                  return 7;
                }),
            7);
  EXPECT_THAT(said,
              HasSubstr("tcp: rank 0 waited 0.1 s for ranks 1, 2 of 3; are they started, and do they reach "
                        "127.0.0.1 port "));
}

TEST(Tcp, a_rank_of_another_job_is_a_stranger) {
  const Door door;
  TcpSeat other = door.seat(1, 2, "another job"), first = door.seat(0, 2);
  first.patience = 0.5;
  std::string said;
  std::jthread stranger([&] {
    run_under_tcp(
        other, [](Communicator&) {},
        [&] {
          said = message_at_hand();
          return 7;
        });
  });
  EXPECT_EQ(run_under_tcp(
                first, [](Communicator&) {}, [] { return 7; }),
            7);
  stranger.join();
  EXPECT_THAT(said, HasSubstr("tcp: rank 1 of 2 finds no rank 0 at 127.0.0.1 port "));
}

// The system itself would ask for most of a minute, whatever patience a rank has.
TEST(Tcp, a_name_server_that_never_answers_holds_no_rank_up_beyond_its_time) {
  const SlowNames names;
  const Stopwatch watch;
  EXPECT_EQ(support::says([&] {
              meet({.rank = 1, .world = 2, .host = "first", .port = 4711, .patience = 0.3}, names.service());
            }),
            "communication: tcp: rank 1 of 2 finds no rank 0 at first port 4711 in time: host first is not "
            "known yet: no name server answers");
  EXPECT_LT(watch.seconds(), 30);  // it would be for ever
  EXPECT_LE(names.asked(), 1);
}

TEST(Tcp, ranks_meet_at_a_name_that_comes_late) {
  const Door door;
  SlowNames names;
  TcpSeat seat = door.seat(1, 2);
  seat.host = "first";
  std::vector<Descriptor> first, second;
  std::jthread rank_0([&] { first = meet(door.seat(0, 2)); });
  std::jthread rank_1([&] { second = meet(seat, names.service()); });
  const Deadline late(60);
  while (names.asked() == 0 && !late.passed()) std::this_thread::yield();
  names.answer();
  rank_0.join();
  rank_1.join();
  EXPECT_TRUE(first.at(1) && second.at(0));
}

// Asked for again and again while nobody knows it, as a pod's name that comes later.
TEST(Tcp, a_name_that_is_not_known_is_what_a_rank_speaks_of) {
  const auto asked = std::make_shared<std::atomic<int>>(0);
  const hosts::NameService nobody = [asked](const std::string& host) {
    ++*asked;
    return hosts::Found{{}, "host " + host + " is not known: nobody has heard of it"};
  };
  EXPECT_EQ(
      support::says(
          [&] { meet({.rank = 1, .world = 2, .host = "first", .port = 4711, .patience = 0.5}, nobody); }),
      "communication: tcp: rank 1 of 2 finds no rank 0 at first port 4711 in time: host first is not known: "
      "nobody has heard of it");
  EXPECT_GT(*asked, 1);
}

TEST(Tcp, a_pulse_says_whom_a_rank_waits_for) {
  const Door door;
  PulseLines lines{};
  Pulse pulse(&lines);
  int awaited = -1;
  std::jthread peer([&] {
    run_under_tcp(
        door.seat(1, 2),
        [&](Communicator& world) {
          const Deadline late(60);
          while (lines.word != std::uint32_t(Spoken::recv) && !late.passed()) std::this_thread::yield();
          awaited = lines.peer;
          PlainDevice device;
          world.send(empty(device, {4}), 0, 5).wait();
        },
        [] { return 7; });
  });
  EXPECT_EQ(run_under_tcp(
                door.seat(0, 2),
                [](Communicator& world) {
                  PlainDevice device;
                  world.recv(empty(device, {4}), 1, 5).wait();
                },
                [] { return 7; }, &pulse),
            0);
  peer.join();
  EXPECT_EQ(awaited, 1);
  EXPECT_EQ(lines.circles, 1u);
  EXPECT_EQ(lines.word, std::uint32_t(Spoken::nothing));
  EXPECT_EQ(lines.of[0].words, 1u);  // the barrier in the end
}
