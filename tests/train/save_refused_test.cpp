// Where nothing can be saved, nothing is trained.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "tests/support/refused.h"
#include "tests/train/tiny_run.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;

// Whoever is root may write anywhere, so somebody else tries.
TEST(Save, into_a_directory_that_cannot_be_written_is_refused_at_once) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TemporaryDirectory folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  const auto tries = [&] {
    if (::getuid() == 0 && ::setuid(65534) != 0) std::_Exit(1);
    const std::string said = refused([&] { train(saving_twice(folder.path())); });
    std::cerr << said;
    std::_Exit(said.empty() ? 1 : 0);
  };
  EXPECT_EXIT(tries(), ::testing::ExitedWithCode(0),
              "\\{checkpoint.save\\} .*: cannot be written: Permission denied");
}
