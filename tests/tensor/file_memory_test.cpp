// A file as a device: what is copied there comes back, and what fails says so.
#include "weft/tensor/file_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "tests/support/failing_disk.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/tensor/host.h"
#include "weft/tensor/host_memory.h"

using namespace weft;
using support::FailingDisk;
using support::TemporaryDirectory;

namespace {

std::vector<float> counted(std::int64_t n) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(float(i));
  return out;
}

}  // namespace

TEST(FileMemory, gives_back_what_it_got_whatever_part_of_it_lies_in_memory) {
  const auto rest = host_memory();
  const TemporaryDirectory folder;
  for (const double fraction : {0.0, 0.3, 0.5, 1.0}) {
    FileMemory file({.directory = folder.path(), .name = "a", .fraction = fraction}, *rest);
    const Tensor first = empty(file, {5000}, Dtype::f32), second = empty(file, {3000}, Dtype::f32);
    EXPECT_EQ(to_host<float>(second), std::vector<float>(3000));
    copy_to<float>(first, counted(5000));
    copy_to<float>(second.slice(0, 1000, 2000), counted(2000));
    EXPECT_EQ(to_host<float>(first), counted(5000)) << fraction;
    EXPECT_EQ(to_host<float>(second.slice(0, 1000, 2000)), counted(2000)) << fraction;
    EXPECT_EQ(to_host<float>(second.slice(0, 0, 1000)), std::vector<float>(1000)) << fraction;
    EXPECT_GE(file.bytes_of_file() + file.bytes_of_memory(), 8000 * 4);
    const bool all = fraction == 1, none = fraction == 0;
    EXPECT_EQ(file.bytes_of_memory() == 0, all);
    EXPECT_EQ(file.bytes_of_file() == 0, none);
  }
}

TEST(FileMemory, leaves_nothing_in_its_directory) {
  const auto rest = host_memory();
  const TemporaryDirectory folder;
  const FileMemory file({.directory = folder.path() / "made", .name = "a"}, *rest);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "made"));
}

TEST(FileMemory, needs_no_file_where_all_stays_in_memory) {
  const auto rest = host_memory();
  FileMemory file({.directory = {}, .name = "a", .fraction = 0}, *rest);
  EXPECT_TRUE(file.holds_numbers());
  const Tensor x = empty(file, {5000}, Dtype::f32);
  EXPECT_EQ(to_host<float>(x), std::vector<float>(5000));
  copy_to<float>(x, counted(5000));
  EXPECT_EQ(to_host<float>(x), counted(5000));
  EXPECT_TRUE(file.reserve());
  EXPECT_EQ(file.bytes_of_file(), 0);
}

TEST(FileMemory, counts_where_it_has_no_file) {
  const auto rest = host_memory();
  FileMemory file({.directory = {}, .name = "a"}, *rest);
  const Tensor x = empty(file, {1024}, Dtype::f32);
  EXPECT_FALSE(file.holds_numbers());
  EXPECT_EQ(file.bytes_of_file(), 4096);
}

TEST(FileMemory, takes_from_the_disk_what_it_reserves_and_gives_it_back) {
  const auto rest = host_memory();
  const TemporaryDirectory folder;
  struct stat seen {};
  FileMemory file({.directory = folder.path(),
                   .name = "a",
                   .take =
                       [&](int fd, std::int64_t at, std::int64_t bytes) {
                         const int error = ::posix_fallocate(fd, at, bytes);
                         (void)::fstat(fd, &seen);
                         return error;
                       }},
                  *rest);
  const Tensor x = empty(file, {100'000}, Dtype::f32);
  EXPECT_EQ(file.bytes_to_reserve(), file.bytes_of_file());
  EXPECT_TRUE(file.reserve());
  EXPECT_GE(seen.st_blocks * 512, 400'000);
  EXPECT_EQ(file.bytes_to_reserve(), 0);
  EXPECT_EQ(to_host<float>(x), std::vector<float>(100'000));
}

TEST(FileMemory, believes_a_disk_that_cannot_promise_anything) {
  const auto rest = host_memory();
  const TemporaryDirectory folder;
  int error = EOPNOTSUPP;
  FileMemory file({.directory = folder.path(), .name = "a", .take = [&](auto...) { return error; }}, *rest);
  const Tensor x = empty(file, {1024}, Dtype::f32);
  EXPECT_TRUE(file.reserve());
  const Tensor y = empty(file, {1024}, Dtype::f32);
  error = ENOSPC;
  EXPECT_FALSE(file.reserve());
}

TEST(FileMemory, says_what_fails) {
  const auto rest = host_memory();
  const TemporaryDirectory folder;
  FailingDisk disk;
  FileMemory file({.directory = folder.path(), .name = "a", .files = &disk}, *rest);
  const Tensor x = empty(file, {1024}, Dtype::f32);
  disk.writes_left = 0;
  EXPECT_NE(refused([&] { copy_to<float>(x, counted(1024)); }).find("No space left on device"),
            std::string::npos);
  disk.reads_left = 0;
  EXPECT_NE(refused([&] { (void)to_host<float>(x); }).find("Input/output error"), std::string::npos);
}
