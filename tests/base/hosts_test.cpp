// Hosts' names while whoever asks goes on, and a name server that never answers; a service of the test's
// stands in.
#include "weft/base/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <optional>

#include "tests/support/slow_names.h"
#include "weft/base/clock.h"

using namespace weft;
using support::SlowNames;
using testing::HasSubstr;

namespace {

int family_of(const hosts::Found& found) { return found.addresses.at(0).at.ss_family; }

bool rings(int bell) {
  pollfd one{.fd = bell, .events = POLLIN, .revents = 0};
  return poll(&one, 1, 60'000) == 1;
}

}  // namespace

TEST(Hosts, that_are_numbers_are_known_at_once) {
  const hosts::NameService nobody = [](const std::string& host) {
    return hosts::Found{{}, "asked for " + host};
  };
  const hosts::Lookup four("10.0.0.7", nobody), six("fd00::7", nobody);
  ASSERT_TRUE(four.found() != nullptr && six.found() != nullptr);
  EXPECT_EQ(family_of(*four.found()), AF_INET);
  EXPECT_EQ(family_of(*six.found()), AF_INET6);
  EXPECT_THAT(hosts::numeric("first").why, HasSubstr("host first is not known: "));
}

TEST(Hosts, ring_when_they_are_known) {
  SlowNames server("fd00::7");
  const hosts::Lookup lookup("first", server.service());
  EXPECT_EQ(lookup.found(), nullptr);
  server.answer();
  ASSERT_TRUE(rings(lookup.bell()));
  ASSERT_NE(lookup.found(), nullptr);
  EXPECT_EQ(family_of(*lookup.found()), AF_INET6);
}

TEST(Hosts, hold_nobody_who_goes) {
  SlowNames server;
  const Stopwatch watch;
  std::optional<hosts::Lookup> lookup(std::in_place, "first", server.service());
  lookup.reset();
  EXPECT_LT(watch.seconds(), 30);  // it would be for ever
}

TEST(Hosts, are_asked_for_once_while_nobody_answers) {
  SlowNames server;
  hosts::Lookups all(server.service());
  const int bell = all.of("first").bell();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(all.of("first").bell(), bell);
  server.answer();
  ASSERT_TRUE(rings(bell));
  EXPECT_EQ(server.asked(), 1);
  EXPECT_EQ(family_of(all.take("first")), AF_INET);
}
