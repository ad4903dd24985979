#include "weft/plan/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/temporary.h"

using namespace weft;

namespace {

// A machine whose kernel tells what a test writes.
class Machine {
 public:
  void tells(const std::string& file, const std::string& words) const {
    const auto path = folder_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << words;
  }
  FreeMemory free() const { return free_memory({folder_.path() / "proc", folder_.path() / "groups"}); }

 private:
  support::TemporaryDirectory folder_;
};

}  // namespace

TEST(FreeMemory, is_what_the_machine_has_where_nothing_limits_it) {
  const Machine machine;
  machine.tells("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:    4000 kB\n");
  machine.tells("proc/self/limits",
                "Max address space         unlimited            unlimited            bytes\n");
  machine.tells("groups/memory.max", "max\n");
  EXPECT_EQ(machine.free().bytes, 4000 * 1024);
  EXPECT_EQ(machine.free().by, "the machine");
}

TEST(FreeMemory, is_what_the_tightest_control_group_leaves_with_pages_that_can_go) {
  const Machine machine;
  machine.tells("proc/meminfo", "MemAvailable:    4000 kB\n");
  machine.tells("proc/self/cgroup", "0::/outer/inner\n");
  machine.tells("groups/outer/inner/memory.max", "3000000\n");
  machine.tells("groups/outer/inner/memory.current", "1000000\n");
  machine.tells("groups/outer/memory.max", "2000000\n");
  machine.tells("groups/outer/memory.current", "1500000\n");
  machine.tells("groups/outer/memory.stat", "anon 5\ninactive_file 200000\n");
  EXPECT_EQ(machine.free().bytes, 700000);
  EXPECT_EQ(machine.free().by, "the control group");
}

TEST(FreeMemory, knows_control_groups_of_the_first_version) {
  const Machine machine;
  machine.tells("proc/self/cgroup", "5:cpu:/x\n4:memory:/not/mounted/here\n");
  machine.tells("groups/memory/memory.limit_in_bytes", "1000\n");
  machine.tells("groups/memory/memory.usage_in_bytes", "400\n");
  EXPECT_EQ(machine.free().bytes, 600);
}

TEST(FreeMemory, is_what_limits_of_the_process_leave) {
  const Machine machine;
  const auto page = std::int64_t(sysconf(_SC_PAGESIZE));
  machine.tells("proc/self/limits",
                "Max data size             900000000            unlimited            bytes\n"
                "Max address space         500000000            unlimited            bytes\n");
  machine.tells("proc/self/statm", "1000 400 300 5 0 100 0\n");
  EXPECT_EQ(machine.free().bytes, 500'000'000 - 1000 * page);
  EXPECT_EQ(machine.free().by, "ulimit -v");
}

// A directory that will be made lies on the disk of the one above it.
TEST(FreeMemory, of_a_disk_is_there_before_its_directory_is) {
  const support::TemporaryDirectory folder;
  const auto capacity = std::int64_t(std::filesystem::space(folder.path()).capacity);
  for (const char* below : {".", "not", "not/made/yet"}) {
    EXPECT_GT(free_disk(folder.path() / below), 0) << below;
    EXPECT_LE(free_disk(folder.path() / below), capacity) << below;
  }
}

TEST(FreeMemory, is_never_less_than_nothing) {
  const Machine machine;
  machine.tells("proc/self/cgroup", "0::/\n");
  machine.tells("groups/memory.max", "100\n");
  machine.tells("groups/memory.current", "300\n");
  EXPECT_EQ(machine.free().bytes, 0);
}
