// Reads happen on a thread, in order, and one that fails is heard of by whoever waits.
#include "weft/optim/fetched.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/failing_disk.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/backend/open.h"
#include "weft/tensor/host.h"

using namespace weft;

namespace {

struct Numbers {
  Numbers() {
    std::vector<float> all(100);
    std::iota(all.begin(), all.end(), 0.F);
    file.copy_from_host(*there.storage(), 0, all.data(), 400).wait();
  }
  Tensor room() const { return empty(*device, {10}); }
  support::TemporaryDirectory folder;
  support::FailingDisk files;
  std::unique_ptr<Device> device = open_device("cpu", {.threads = 1});
  FileMemory file{{.directory = folder.path(), .name = "a", .files = &files}, *device};
  Tensor there = empty(file, {100});
};

}  // namespace

TEST(Fetcher, brings_what_it_is_asked_for) {
  const Numbers numbers;
  Fetcher fetcher(*numbers.device, 3);
  for (int round = 0; round < 5; ++round) {  // the ring goes round
    std::vector<Tensor> rooms;
    std::vector<Fetcher::Ticket> tickets;
    for (const std::int64_t at : {0, 40, 90}) {
      rooms.push_back(numbers.room());
      tickets.push_back(fetcher.ask(rooms.back(), numbers.there.slice(0, at, 10)));
    }
    for (const Fetcher::Ticket ticket : tickets) fetcher.wait(ticket);
    EXPECT_EQ(to_host<float>(rooms[0]).front(), 0);
    EXPECT_EQ(to_host<float>(rooms[1]).front(), 40);
    EXPECT_EQ(to_host<float>(rooms[2]).back(), 99);
  }
}

TEST(Fetcher, tells_who_waits_of_a_read_that_failed) {
  const Numbers numbers;
  Fetcher fetcher(*numbers.device, 2);
  const Tensor first = numbers.room(), second = numbers.room();
  numbers.files.reads_left = 0;
  const Fetcher::Ticket one = fetcher.ask(first, numbers.there.slice(0, 0, 10)),
                        two = fetcher.ask(second, numbers.there.slice(0, 10, 10));
  EXPECT_NE(refused([&] { fetcher.wait(one); }).find("Input/output error"), std::string::npos);
  EXPECT_NE(refused([&] { fetcher.wait(two); }).find("Input/output error"), std::string::npos);
  fetcher.settle(two);
}

TEST(Fetcher, reads_nothing_where_nothing_has_numbers) {
  const auto counts = open_device("meta", {});
  FileMemory file({.name = "a"}, *counts);
  Fetcher fetcher(*counts, 1);
  const Tensor there = empty(file, {10}), here = empty(*counts, {10});
  for (int i = 0; i < 3; ++i) fetcher.wait(fetcher.ask(here, there));
}
