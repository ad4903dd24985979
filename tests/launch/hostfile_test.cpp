#include "weft/launch/hostfile.h"

#include <gtest/gtest.h>

#include "tests/support/says.h"

using namespace weft;
using namespace weft::launch;
using weft::support::says;

namespace {

std::string refused(std::string_view content) {
  return says([&] { read_hosts("hosts", content); });
}

const std::vector<Host> three{{"a", {0, 1, 2}}, {"b", {0, 1}}, {"c", {0}}};

}  // namespace

TEST(Hostfile, takes_both_dialects_comments_and_line_ends_of_windows) {
  const auto hosts =
      read_hosts("hosts", "# mine\r\nb-1.cluster slots=2 max_slots=4\r\n\n  a:3  # eight\n[fe80::1]:1\nlast");
  EXPECT_EQ(hosts,
            (std::vector<Host>{{"b-1.cluster", {0, 1}}, {"a", {0, 1, 2}}, {"fe80::1", {0}}, {"last", {0}}}));
  EXPECT_EQ(hostfile_of(three), "a slots=3\nb slots=2\nc slots=1\n");
  EXPECT_EQ(read_hosts("hosts", hostfile_of(three)), three);
}

TEST(Hostfile, names_the_line_of_what_it_does_not_understand) {
  EXPECT_EQ(refused("a slots=2\nb slots=two\n"), "usage: hosts:2: 'two' is not a whole number");
  EXPECT_EQ(refused("a slots=2 gpus=4"),
            "usage: hosts:1: 'gpus=4' is not understood; a line is HOST slots=N or HOST:N");
  EXPECT_EQ(refused("a:2 slots=2"),
            "usage: hosts:1: 'slots=2' is not understood; a line is HOST slots=N or HOST:N");
  EXPECT_EQ(refused("a slots=0"), "usage: hosts:1: 0 is less than 1");
  EXPECT_EQ(refused("a slots=9999999"), "usage: hosts:1: 9999999 slots are more than the 65536 of a host");
  EXPECT_EQ(refused("\n\na;reboot"), "usage: hosts:3: 'a;reboot' is not the name of a host");
  EXPECT_EQ(refused("-oProxyCommand=x"), "usage: hosts:1: '-oProxyCommand=x' is not the name of a host");
  EXPECT_EQ(refused("[::1"), "usage: hosts:1: '[::1' has no ] for its [");
  EXPECT_EQ(refused("[::1]x"), "usage: hosts:1: '[::1]x' goes on after its ]");
  EXPECT_EQ(refused("a\nb\na"), "usage: hosts:3: host a stands in line 1 already");
  EXPECT_EQ(refused(std::string("a\0b", 3)), "usage: hosts:1: a zero byte; is this a text file?");
  EXPECT_EQ(refused("# nobody\n"), "usage: hosts: names no host");
}

TEST(Hostfile, reads_a_hundred_thousand_hosts) {
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += "n" + std::to_string(i) + " slots=8\n";
  EXPECT_EQ(read_hosts("hosts", content).size(), 100'000u);
}

TEST(Hostfile, keeps_the_hosts_and_slots_that_are_included) {
  EXPECT_EQ(included(three, "c@a:2,0,2"), (std::vector<Host>{{"a", {0, 2}}, {"c", {0}}}));
  EXPECT_EQ(included(three, "b"), (std::vector<Host>{{"b", {0, 1}}}));
}

TEST(Hostfile, leaves_out_the_hosts_and_slots_that_are_excluded) {
  EXPECT_EQ(excluded(three, "b@a:1"), (std::vector<Host>{{"a", {0, 2}}, {"c", {0}}}));
  EXPECT_EQ(excluded(three, "c:0"), (std::vector<Host>{{"a", {0, 1, 2}}, {"b", {0, 1}}}));
}

TEST(Hostfile, says_which_word_of_a_filter_names_nothing) {
  EXPECT_EQ(says([] { included(three, "d"); }), "usage: --include: 'd' is not a host of the hostfile");
  EXPECT_EQ(says([] { excluded(three, "b:2"); }), "usage: --exclude: host b has no slot 2, it has 2");
  EXPECT_EQ(says([] { included(three, "a:"); }), "usage: --include: '' is not a whole number");
  EXPECT_EQ(says([] { included(three, "a@"); }), "usage: --include: '' is not a host of the hostfile");
  EXPECT_EQ(says([] { excluded(three, "a@b@c"); }), "usage: --exclude: no slot of any host is left");
}
