// Files: what is read is what was written, a failed write leaves the old file, and every failure names its
// file.
#include "weft/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "tests/support/says.h"
#include "tests/support/temporary.h"

using namespace weft;
using support::says;
using support::TemporaryDirectory;

namespace {

// Fails the n-th call of one word with an errno; writes a log of the words used.
class Faulty : public FileSystem {
 public:
  Faulty(std::string word, int error, int nth = 1) : word_(std::move(word)), error_(error), left_(nth) {}
  int open(const char* p, int flags, unsigned mode) const override {
    return hit("open") ? -1 : FileSystem::open(p, flags, mode);
  }
  ssize_t read(int fd, void* to, std::size_t n, std::int64_t at) const override {
    return hit("read") ? -1 : FileSystem::read(fd, to, n, at);
  }
  ssize_t write(int fd, const void* from, std::size_t n, std::int64_t at) const override {
    return hit("write") ? -1 : FileSystem::write(fd, from, n, at);
  }
  std::int64_t size(int fd) const override { return hit("size") ? -1 : FileSystem::size(fd); }
  int sync(int fd) const override { return hit("sync") ? -1 : FileSystem::sync(fd); }
  int close(int fd) const override {
    const int done = FileSystem::close(fd);
    return hit("close") ? -1 : done;
  }
  int rename(const char* a, const char* b) const override {
    return hit("rename") ? -1 : FileSystem::rename(a, b);
  }
  int make_directory(const char* p, unsigned mode) const override {
    return hit("mkdir") ? -1 : FileSystem::make_directory(p, mode);
  }
  const std::string& log() const { return log_; }

 private:
  bool hit(const char* word) const {
    log_ += std::string(word) + " ";
    if (word_ != word || --left_ != 0) return false;
    errno = error_;
    return true;
  }
  std::string word_;
  int error_;
  mutable int left_;
  mutable std::string log_;
};

// Moves few bytes at a time and is interrupted between, as the system may.
class Slow : public FileSystem {
 public:
  ssize_t read(int fd, void* to, std::size_t n, std::int64_t at) const override {
    return interrupted() ? -1 : FileSystem::read(fd, to, std::min<std::size_t>(n, 3), at);
  }
  ssize_t write(int fd, const void* from, std::size_t n, std::int64_t at) const override {
    return interrupted() ? -1 : FileSystem::write(fd, from, std::min<std::size_t>(n, 3), at);
  }

 private:
  bool interrupted() const {
    errno = EINTR;
    return ++calls_ % 2 == 0;
  }
  mutable int calls_ = 0;
};

std::string name(const std::filesystem::path& path) { return path.string(); }

int entries(const std::filesystem::path& directory) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

}  // namespace

TEST(File, reads_back_what_was_written) {
  const TemporaryDirectory dir;
  {
    File out(dir / "a", Open::create);
    out.write("hello ");
    out.write("world");
    EXPECT_EQ(out.at(), 11);
    out.write_at(0, std::as_bytes(std::span("J", 1)));
    EXPECT_EQ(out.size(), 11);
    out.sync();
    out.close();
  }
  EXPECT_EQ(read_file(dir / "a"), "Jello world");
  File in(dir / "a", Open::read);
  std::array<char, 8> some{};
  EXPECT_EQ(in.read(std::as_writable_bytes(std::span(some))), 8u);
  EXPECT_EQ(in.read(std::as_writable_bytes(std::span(some))), 3u);
  EXPECT_EQ(in.read(std::as_writable_bytes(std::span(some))), 0u);
}

TEST(File, appends_updates_and_refuses_to_overwrite_as_asked) {
  const TemporaryDirectory dir;
  const auto path = dir / "a";
  File(path, Open::fresh).write("one");
  EXPECT_EQ(says([&] { File(path, Open::fresh); }), "data: cannot create " + name(path) + ": File exists");
  File(path, Open::append).write(" two");
  EXPECT_EQ(read_file(path), "one two");
  File(path, Open::update).write("ONE");
  EXPECT_EQ(read_file(path), "ONE two");
  File(path, Open::create).write("3");
  EXPECT_EQ(read_file(path), "3");
}

TEST(File, continues_after_short_and_interrupted_calls) {
  const TemporaryDirectory dir;
  const Slow slow;
  File(dir / "a", Open::create, slow).write("a longer line than three bytes");
  EXPECT_EQ(read_file(dir / "a", slow), "a longer line than three bytes");
}

TEST(File, names_the_file_that_is_not_there) {
  const TemporaryDirectory dir;
  const auto path = dir / "none";
  EXPECT_EQ(says([&] { File(path, Open::read); }),
            "data: cannot open " + name(path) + ": No such file or directory");
  EXPECT_EQ(says([&] { File(path, Open::update); }),
            "data: cannot open " + name(path) + ": No such file or directory");
  EXPECT_EQ(says([&] { MappedFile{path}; }),
            "data: cannot open " + name(path) + ": No such file or directory");
  EXPECT_EQ(says([&] { File(path / "below", Open::create); }),
            "data: cannot create " + name(path / "below") + ": No such file or directory");
}

TEST(File, says_how_much_a_short_file_holds) {
  const TemporaryDirectory dir;
  File(dir / "a", Open::create).write("0123456789");
  const File in(dir / "a", Open::read);
  std::array<std::byte, 8> some{};
  in.read_at(2, some);
  EXPECT_EQ(some[0], std::byte{'2'});
  EXPECT_EQ(says([&] { in.read_at(4, some); }),
            "data: " + name(dir / "a") + ": holds 10 bytes, and 8 were expected from byte 4");
}

TEST(File, tells_each_failing_call_by_its_name) {
  const TemporaryDirectory dir;
  const auto path = dir / "a";
  File(path, Open::create).write("x");
  const std::string at = " " + name(path) + ": Input/output error";
  const auto with = [&](const char* word, const auto& act) {
    const Faulty faulty(word, EIO);
    return says([&] { act(faulty); });
  };
  EXPECT_EQ(with("read", [&](auto& fs) { (void)read_file(path, fs); }), "device: cannot read" + at);
  EXPECT_EQ(with("size", [&](auto& fs) { (void)read_file(path, fs); }), "device: cannot measure" + at);
  EXPECT_EQ(with("size", [&](auto& fs) { File(path, Open::append, fs); }), "device: cannot measure" + at);
  EXPECT_EQ(with("write", [&](auto& fs) { File(path, Open::update, fs).write("y"); }),
            "device: cannot write" + at);
  EXPECT_EQ(with("sync", [&](auto& fs) { File(path, Open::update, fs).sync(); }), "device: cannot sync" + at);
  EXPECT_EQ(with("close", [&](auto& fs) { File(path, Open::update, fs).close(); }),
            "device: cannot close" + at);
}

TEST(File, moves_its_descriptor_once) {
  const TemporaryDirectory dir;
  File a(dir / "a", Open::create);
  a.write("1");
  File b = std::move(a);
  b.write("2");
  File c(dir / "c", Open::create);
  c = std::move(b);
  c.write("3");
  c.close();
  c.close();
  EXPECT_EQ(read_file(dir / "a"), "123");
}

TEST(ReadFile, reads_files_that_do_not_know_their_size) {
  EXPECT_GT(read_file("/proc/self/status").size(), 100u);
}

TEST(MappedFile, shows_the_bytes_and_checks_every_window) {
  const TemporaryDirectory dir;
  const auto path = dir / "a";
  const std::array<std::int32_t, 3> values = {7, -8, 9};
  File(path, Open::create).write(std::as_bytes(std::span(values)));
  MappedFile map{path};
  EXPECT_EQ(map.size(), 12);
  EXPECT_EQ(map.as<std::int32_t>(4, 2)[0], -8);
  EXPECT_EQ(map.bytes(12, 0).size(), 0u);
  const std::string holds = "data: " + name(path) + ": holds 12 bytes, and ";
  EXPECT_EQ(says([&] { (void)map.as<std::int32_t>(4, 3); }),
            holds + "3 values of 4 bytes were expected from byte 4");
  EXPECT_EQ(says([&] { (void)map.bytes(13, 0); }), holds + "0 values of 1 bytes were expected from byte 13");
  EXPECT_EQ(says([&] { (void)map.bytes(-1, 1); }), holds + "1 values of 1 bytes were expected from byte -1");
  EXPECT_EQ(says([&] { (void)map.as<std::int64_t>(0, std::int64_t{1} << 61); }),
            holds + "2305843009213693952 values of 8 bytes were expected from byte 0");
  EXPECT_EQ(says([&] { (void)map.as<std::int32_t>(2, 1); }),
            "data: " + name(path) + ": byte 2 is not aligned for values of 4 bytes");
  MappedFile moved = std::move(map);
  EXPECT_EQ(moved.size(), 12);
  EXPECT_EQ(map.size(), 0);  // NOLINT: a moved-from map is empty, and says so
}

TEST(MappedFile, takes_an_empty_file_and_refuses_a_directory) {
  const TemporaryDirectory dir;
  File(dir / "a", Open::create).close();
  EXPECT_EQ(MappedFile(dir / "a").size(), 0);
  EXPECT_EQ(says([&] { MappedFile{dir.path()}; }),
            "data: cannot map " + name(dir.path()) + ": not a regular file");
}

TEST(WriteAtomically, writes_syncs_renames_and_syncs_the_directory_in_this_order) {
  const TemporaryDirectory dir;
  const Faulty watch("none", 0);
  write_atomically(dir / "a", "new", watch);
  EXPECT_EQ(watch.log(), "open write sync close rename open sync close ");
  EXPECT_EQ(read_file(dir / "a"), "new");
  EXPECT_EQ(entries(dir.path()), 1);
}

TEST(WriteAtomically, leaves_the_old_file_whole_whatever_call_fails) {
  const TemporaryDirectory dir;
  const auto path = dir / "a";
  write_atomically(path, "old");
  const auto with = [&](const char* word, int error) {
    return says([&] { write_atomically(path, "new", Faulty(word, error)); });
  };
  EXPECT_EQ(with("rename", EIO), "device: cannot rename to " + name(path) + ": Input/output error");
  for (const char* word : {"open", "write", "sync", "close"}) {
    const std::string said = with(word, ENOSPC);
    EXPECT_NE(said.find(name(path) + ".partial-"), std::string::npos) << said;
    EXPECT_TRUE(said.ends_with(": No space left on device")) << said;
    EXPECT_EQ(read_file(path), "old") << word;
    EXPECT_EQ(entries(dir.path()), 1) << word;
  }
}

TEST(WriteAtomically, reports_a_directory_that_cannot_be_synced) {
  const TemporaryDirectory dir;
  EXPECT_EQ(says([&] { write_atomically(dir / "a", "new", Faulty("sync", EIO, 2)); }),
            "device: cannot sync " + name(dir.path()) + ": Input/output error");
  EXPECT_EQ(says([&] { write_atomically(dir / "a", "new", Faulty("open", EACCES, 2)); }),
            "data: cannot open " + name(dir.path()) + ": Permission denied");
  // Where directories cannot be synced at all there is nothing to report.
  EXPECT_EQ(says([&] { write_atomically(dir / "a", "new", Faulty("sync", EINVAL, 2)); }), "nothing");
}

TEST(WriteAtomically, removes_its_part_when_the_writer_throws) {
  const TemporaryDirectory dir;
  EXPECT_EQ(says([&] {
              write_atomically(dir / "a", [](File& file) {
                file.write("half");
                fail(Kind::usage, "changed my mind");
              });
            }),
            "usage: changed my mind");
  EXPECT_EQ(entries(dir.path()), 0);
}

TEST(WriteAtomically, says_when_the_disk_takes_nothing) {
  class Full : public FileSystem {
    ssize_t write(int, const void*, std::size_t, std::int64_t) const override { return 0; }
  };
  const TemporaryDirectory dir;
  const std::string said = says([&] { write_atomically(dir / "a", "new", Full()); });
  EXPECT_TRUE(said.ends_with(": the disk takes no more bytes")) << said;
}

TEST(IsPartial, knows_the_names_of_unfinished_files) {
  const TemporaryDirectory dir;
  write_atomically(dir / "a", [](File& file) { EXPECT_TRUE(is_partial(file.path())); });
  EXPECT_TRUE(is_partial("x/model.bin.partial-0123abcd"));
  EXPECT_FALSE(is_partial("x/model.bin"));
  EXPECT_FALSE(is_partial(".partial-0123abcd"));
  EXPECT_FALSE(is_partial("model.partial-0123abcg"));
}

TEST(RenameDurably, moves_over_an_old_name_and_names_both_where_it_cannot) {
  const TemporaryDirectory dir;
  make_directories(dir / "below");
  File(dir / "a", Open::create).write("1");
  const Faulty watch("none", 0);
  rename_durably(dir / "a", dir.path() / "below" / "b", watch);
  EXPECT_EQ(watch.log(), "rename open sync close open sync close ");
  EXPECT_EQ(read_file(dir.path() / "below" / "b"), "1");
  EXPECT_EQ(
      says([&] { rename_durably(dir / "a", dir / "c"); }),
      "data: cannot rename " + name(dir / "a") + " to " + name(dir / "c") + ": No such file or directory");
}

TEST(MakeDirectories, makes_those_above_too_and_is_content_when_they_exist) {
  const TemporaryDirectory dir;
  const auto deep = dir.path() / "x" / "y" / "z";
  make_directories(deep);
  make_directories(deep);
  make_directories(dir.path() / "x" / "w" / "");
  EXPECT_TRUE(std::filesystem::is_directory(deep));
  EXPECT_TRUE(std::filesystem::is_directory(dir.path() / "x" / "w"));
  File(dir / "file", Open::create).close();
  EXPECT_EQ(says([&] { make_directories(dir.path() / "file"); }),
            "data: cannot make " + name(dir / "file") + ": File exists");
  EXPECT_EQ(says([&] { make_directories(dir / "new", Faulty("mkdir", ENOSPC)); }),
            "device: cannot make " + name(dir / "new") + ": No space left on device");
}
