// Files over the operating system's calls: interrupted calls are repeated, short ones continued, failed ones
// told with the file's name.
#include "weft/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>
#include <utility>

namespace weft {
namespace {

constexpr std::size_t most_at_once = std::size_t{1} << 30;  // Linux moves 2 GiB less a page in a call
constexpr std::string_view partial_mark = ".partial-";
constexpr std::size_t partial_digits = 8;

int flags_of(Open how) {
  switch (how) {
    case Open::read:
      return O_RDONLY | O_CLOEXEC;
    case Open::create:
      return O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
    case Open::fresh:
      return O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    case Open::append:
      return O_RDWR | O_CREAT | O_CLOEXEC;
    case Open::update:
      return O_RDWR | O_CLOEXEC;
  }
  return O_RDONLY;
}

// A wrong name, a wrong right and a directory in place of a file are the person's to correct; the rest is the
// machine's.
Kind kind_of(int error) {
  switch (error) {
    case ENOENT:
    case EACCES:
    case EPERM:
    case EISDIR:
    case ENOTDIR:
    case EEXIST:
    case ENAMETOOLONG:
    case ELOOP:
    case EROFS:
      return Kind::data;
    default:
      return Kind::device;
  }
}

template <class Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// Reads until `to` is full or the file ends.
std::size_t read_up_to(const FileSystem& files, int fd, std::span<std::byte> to, std::int64_t at,
                       const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < to.size()) {
    const auto now = uninterrupted([&] {
      return files.read(fd, to.data() + done, std::min(to.size() - done, most_at_once),
                        at + static_cast<std::int64_t>(done));
    });
    if (now < 0) fail_errno("read", path, errno);
    if (now == 0) break;
    done += static_cast<std::size_t>(now);
  }
  return done;
}

void write_all(const FileSystem& files, int fd, std::span<const std::byte> from, std::int64_t at,
               const std::filesystem::path& path) {
  while (!from.empty()) {
    const auto now =
        uninterrupted([&] { return files.write(fd, from.data(), std::min(from.size(), most_at_once), at); });
    if (now < 0) fail_errno("write", path, errno);
    if (now == 0) fail(Kind::device, "cannot write ", path.string(), ": the disk takes no more bytes");
    from = from.subspan(static_cast<std::size_t>(now));
    at += now;
  }
}

std::filesystem::path directory_of(const std::filesystem::path& path) {
  const auto directory = path.parent_path();
  return directory.empty() ? std::filesystem::path(".") : directory;
}

std::filesystem::path partial_name(const std::filesystem::path& path) {
  std::random_device entropy;
  char digits[partial_digits + 1];
  std::snprintf(digits, sizeof digits, "%08x", entropy());
  return path.string() + std::string(partial_mark) + digits;
}

}  // namespace

int FileSystem::open(const char* path, int flags, unsigned mode) const { return ::open(path, flags, mode); }
ssize_t FileSystem::read(int fd, void* to, std::size_t bytes, std::int64_t at) const {
  return ::pread(fd, to, bytes, at);
}
ssize_t FileSystem::write(int fd, const void* from, std::size_t bytes, std::int64_t at) const {
  return ::pwrite(fd, from, bytes, at);
}
std::int64_t FileSystem::size(int fd) const {
  struct stat found {};
  return ::fstat(fd, &found) == 0 ? static_cast<std::int64_t>(found.st_size) : -1;
}
int FileSystem::sync(int fd) const { return ::fsync(fd); }
int FileSystem::close(int fd) const { return ::close(fd); }
int FileSystem::rename(const char* from, const char* to) const { return ::rename(from, to); }
int FileSystem::remove(const char* path) const { return ::unlink(path); }
int FileSystem::make_directory(const char* path, unsigned mode) const { return ::mkdir(path, mode); }
int FileSystem::lock(int fd) const { return ::flock(fd, LOCK_EX | LOCK_NB); }
bool FileSystem::is_at(int fd, const char* path) const {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd, &open) == 0 && ::stat(path, &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

const FileSystem& disk() {
  static const FileSystem real;
  return real;
}

void fail_errno(std::string_view verb, const std::filesystem::path& path, int error, Place at) {
  throw Error(kind_of(error),
              text("cannot ", verb, " ", path.string(), ": ", std::generic_category().message(error)), at);
}

File::File(std::filesystem::path path, Open how, const FileSystem& files)
    : path_(std::move(path)), files_(&files) {
  fd_ = uninterrupted([&] { return files.open(path_.c_str(), flags_of(how), 0666); });
  if (fd_ < 0) fail_errno(how == Open::read || how == Open::update ? "open" : "create", path_, errno);
  if (how == Open::append) {
    at_ = files.size(fd_);
    if (at_ < 0) {
      const int error = errno;
      files.close(fd_);
      fail_errno("measure", path_, error);
    }
  }
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      files_(other.files_),
      fd_(std::exchange(other.fd_, -1)),
      at_(other.at_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(files_, other.files_);
  std::swap(fd_, other.fd_);
  std::swap(at_, other.at_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) files_->close(fd_);
}

std::int64_t File::size() const {
  const std::int64_t bytes = files_->size(fd_);
  if (bytes < 0) fail_errno("measure", path_, errno);
  return bytes;
}

std::size_t File::read(std::span<std::byte> to) {
  const std::size_t done = read_up_to(*files_, fd_, to, at_, path_);
  at_ += static_cast<std::int64_t>(done);
  return done;
}

void File::read_at(std::int64_t at, std::span<std::byte> to) const {
  const std::size_t done = read_up_to(*files_, fd_, to, at, path_);
  if (done < to.size()) {
    fail(Kind::data, path_.string(), ": holds ", size(), " bytes, and ", to.size(),
         " were expected from byte ", at);
  }
}

void File::write(std::span<const std::byte> from) {
  write_all(*files_, fd_, from, at_, path_);
  at_ += static_cast<std::int64_t>(from.size());
}

void File::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void File::write_at(std::int64_t at, std::span<const std::byte> from) {
  write_all(*files_, fd_, from, at, path_);
}

void File::sync() {
  if (uninterrupted([&] { return files_->sync(fd_); }) < 0) fail_errno("sync", path_, errno);
}

void File::close() {
  // After a failed close the descriptor is gone all the same: it is never closed twice.
  const int fd = std::exchange(fd_, -1);
  if (fd >= 0 && files_->close(fd) < 0 && errno != EINTR) fail_errno("close", path_, errno);
}

MappedFile::MappedFile(std::filesystem::path path) : path_(std::move(path)) {
  const FileSystem& files = disk();
  const int fd = uninterrupted([&] { return files.open(path_.c_str(), O_RDONLY | O_CLOEXEC, 0); });
  if (fd < 0) fail_errno("open", path_, errno);
  struct stat found {};
  const bool regular = ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
  const auto size = regular ? static_cast<std::size_t>(found.st_size) : 0;
  void* const memory = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0) : nullptr;
  const int error = errno;
  files.close(fd);  // the map keeps the file
  if (!regular) fail(Kind::data, "cannot map ", path_.string(), ": not a regular file");
  if (memory == MAP_FAILED) fail_errno("map", path_, error);
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  // munmap wants the pointer mmap gave, which was not const.
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::span<const std::byte> MappedFile::bytes(std::int64_t at, std::int64_t count) const {
  check(at, count, 1, 1);
  return bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
}

void MappedFile::check(std::int64_t at, std::int64_t count, std::size_t width, std::size_t alignment) const {
  const auto step = static_cast<std::int64_t>(width);
  if (at < 0 || count < 0 || at > size() || count > (size() - at) / step) {
    fail(Kind::data, path_.string(), ": holds ", size(), " bytes, and ", count, " values of ", width,
         " bytes were expected from byte ", at);
  }
  if (at % static_cast<std::int64_t>(alignment) != 0) {
    fail(Kind::data, path_.string(), ": byte ", at, " is not aligned for values of ", width, " bytes");
  }
}

std::string read_file(const std::filesystem::path& path, const FileSystem& files) {
  File file(path, Open::read, files);
  std::string out;
  // Files such as those in /proc say 0 and hold more: read on until nothing comes.
  for (std::size_t room = static_cast<std::size_t>(file.size()) + 1;;
       room = std::max<std::size_t>(room, 4096)) {
    const std::size_t before = out.size();
    out.resize(before + room);
    const std::size_t done = file.read(std::as_writable_bytes(std::span(out)).subspan(before));
    out.resize(before + done);
    if (done < room) return out;
  }
}

void write_atomically(const std::filesystem::path& path, const std::function<void(File&)>& writer,
                      const FileSystem& files) {
  const auto partial = partial_name(path);
  File file(partial, Open::fresh, files);
  try {
    writer(file);
    file.sync();
    file.close();
    if (files.rename(partial.c_str(), path.c_str()) < 0) fail_errno("rename to", path, errno);
  } catch (...) {
    files.remove(partial.c_str());  // the first failure is the one to tell
    throw;
  }
  sync_directory(directory_of(path), files);
}

void write_atomically(const std::filesystem::path& path, std::string_view content, const FileSystem& files) {
  write_atomically(
      path, [content](File& file) { file.write(content); }, files);
}

bool is_partial(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const std::size_t tail = partial_mark.size() + partial_digits;
  if (name.size() <= tail || name.compare(name.size() - tail, partial_mark.size(), partial_mark) != 0)
    return false;
  return name.find_first_not_of("0123456789abcdef", name.size() - partial_digits) == std::string::npos;
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to,
                    const FileSystem& files) {
  if (files.rename(from.c_str(), to.c_str()) < 0)
    fail_errno(text("rename ", from.string(), " to"), to, errno);
  sync_directory(directory_of(to), files);
  if (directory_of(from) != directory_of(to)) sync_directory(directory_of(from), files);
}

void sync_directory(const std::filesystem::path& directory, const FileSystem& files) {
  const int fd =
      uninterrupted([&] { return files.open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  if (fd < 0) fail_errno("open", directory, errno);
  const int result = uninterrupted([&] { return files.sync(fd); });
  const int error = errno;
  files.close(fd);
  // Some file systems cannot sync a directory and say EINVAL; there is nothing more to do on them.
  if (result < 0 && error != EINVAL) fail_errno("sync", directory, error);
}

void make_directories(const std::filesystem::path& directory, const FileSystem& files) {
  if (directory.empty() || std::filesystem::is_directory(directory)) return;
  const auto above = directory_of(directory);
  if (above != directory) make_directories(above, files);
  if (files.make_directory(directory.c_str(), 0777) < 0) {
    if (errno == EEXIST && std::filesystem::is_directory(directory)) return;  // another rank was faster
    fail_errno("make", directory, errno);
  }
  sync_directory(above, files);
}

}  // namespace weft
