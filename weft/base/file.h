// Files that close themselves, maps of files, and writing so that a reader sees the old file or the new one,
// never a part.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/error.h"

namespace weft {

/// The operating system's words for files, with its manners: -1 and errno. Everything that writes takes one,
/// so that a test can make any call fail. It holds no state; one object serves all threads.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const char* path, int flags, unsigned mode) const;
  virtual ssize_t read(int fd, void* to, std::size_t bytes, std::int64_t at) const;
  virtual ssize_t write(int fd, const void* from, std::size_t bytes, std::int64_t at) const;
  virtual std::int64_t size(int fd) const;
  virtual int sync(int fd) const;
  virtual int close(int fd) const;
  virtual int rename(const char* from, const char* to) const;
  virtual int remove(const char* path) const;
  virtual int make_directory(const char* path, unsigned mode) const;
  /// flock for this open file alone, without waiting.
  virtual int lock(int fd) const;
  /// Whether the open file is the one that the path names.
  virtual bool is_at(int fd, const char* path) const;
};

/// The real one.
const FileSystem& disk();

enum class Open {
  read,    // must exist
  create,  // empties what is there
  fresh,   // must not exist
  append,  // writes go behind what is there
  update,  // reads and writes what is there; must exist
};

/// An open file. Reads and writes are whole or an error that names the file; a failed close is an error too,
/// if you call close().
class File {
 public:
  File(std::filesystem::path path, Open how, const FileSystem& files = disk());
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::int64_t size() const;
  /// Where the next write() goes and how far read() has come.
  [[nodiscard]] std::int64_t at() const { return at_; }

  /// Fills `to` from where the last read ended, or as far as the file goes; returns the bytes read.
  [[nodiscard]] std::size_t read(std::span<std::byte> to);
  /// Fills `to` completely, or says how much the file holds.
  void read_at(std::int64_t at, std::span<std::byte> to) const;
  void write(std::span<const std::byte> from);
  void write(std::string_view text);
  void write_at(std::int64_t at, std::span<const std::byte> from);

  /// Returns when the bytes are on the disk.
  void sync();
  void close();

 private:
  std::filesystem::path path_;
  const FileSystem* files_;
  int fd_ = -1;
  std::int64_t at_ = 0;
};

/// A file seen as memory, read only. The file must not shrink while it is mapped.
class MappedFile {
 public:
  explicit MappedFile(std::filesystem::path path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }
  /// The bytes from `at`; says what the file holds where that is less.
  [[nodiscard]] std::span<const std::byte> bytes(std::int64_t at, std::int64_t count) const;
  /// `count` values of T from byte `at`, which must be aligned for T.
  template <class T>
  [[nodiscard]] std::span<const T> as(std::int64_t at, std::int64_t count) const {
    check(at, count, sizeof(T), alignof(T));
    return {reinterpret_cast<const T*>(bytes_.data() + at), static_cast<std::size_t>(count)};
  }

 private:
  void check(std::int64_t at, std::int64_t count, std::size_t width, std::size_t alignment) const;

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

/// The whole file.
[[nodiscard]] std::string read_file(const std::filesystem::path& path, const FileSystem& files = disk());

/// Calls `writer` with a new file beside `path`, syncs it, gives it the name and syncs the directory. When
/// this returns, the file survives a power cut; when it throws, `path` is as it was. A process that is killed
/// meanwhile leaves a file for which is_partial() holds.
void write_atomically(const std::filesystem::path& path, const std::function<void(File&)>& writer,
                      const FileSystem& files = disk());
void write_atomically(const std::filesystem::path& path, std::string_view content,
                      const FileSystem& files = disk());

/// Whether a name is one that write_atomically() gives to an unfinished file.
[[nodiscard]] bool is_partial(const std::filesystem::path& path);

/// Moves a file or directory over another name and syncs the directories of both.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to,
                    const FileSystem& files = disk());

/// Makes new names in a directory survive a power cut.
void sync_directory(const std::filesystem::path& directory, const FileSystem& files = disk());

/// Makes a directory and those above it, durably; one that exists is fine.
void make_directories(const std::filesystem::path& directory, const FileSystem& files = disk());

/// Throws "cannot VERB PATH: what errno says", with the kind that fits: `data` for a wrong name or right,
/// `device` for a failing disk.
[[noreturn]] void fail_errno(std::string_view verb, const std::filesystem::path& path, int error,
                             Place at = {});

}  // namespace weft
