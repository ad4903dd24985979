// What nobody wrote reads as zeros, and takes no room until it is reserved.
#include "weft/tensor/file_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <vector>

#include "weft/base/format.h"
#include "weft/base/number.h"
#include "weft/tensor/kernels.h"

namespace weft {
namespace {

constexpr std::int64_t page = 4096;

class NoKernels final : public Kernels {
 public:
  const char* name() const override { return "a file"; }
};

/// The same file twice: some calls want the number.
struct Opened {
  File file;
  Descriptor again;
};

Opened unnamed(const FileMemory::BackingFile& backing) {
  make_directories(backing.directory, *backing.files);
  const std::filesystem::path path =
      backing.directory / text(".weft-", backing.name, "-of-process-", ::getpid());
  File file(path, Open::create, *backing.files);
  Descriptor again(backing.files->open(path.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!again) fail_errno("open", path, errno);
  if (backing.files->remove(path.c_str()) < 0) fail_errno("remove", path, errno);
  return {std::move(file), std::move(again)};
}

int take(int file, std::int64_t at, std::int64_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(file, at, bytes);
  return error;
}

}  // namespace

class FileMemory::Region final : public Storage {
 public:
  struct Bytes {
    std::int64_t in_all, in_file, at;
  };
  Region(Device& device, const Bytes& bytes, Use use, StorageRef rest)
      : Storage(device, nullptr, bytes.in_all, use),
        in_file_(bytes.in_file),
        at_(bytes.at),
        rest_(std::move(rest)) {}
  /// file(where in the file, bytes) and memory(storage, where in it, bytes that lie before, bytes).
  template <class InFile, class InMemory>
  void each_part(std::int64_t offset, std::int64_t bytes, const InFile& file, const InMemory& memory) const {
    const std::int64_t first = std::clamp<std::int64_t>(in_file_ - offset, 0, bytes);
    if (first > 0) file(at_ + offset, first);
    if (first < bytes) memory(*rest_, offset + first - in_file_, first, bytes - first);
  }

 private:
  std::int64_t in_file_, at_;
  StorageRef rest_;
};

FileMemory::FileMemory(BackingFile backing, Device& rest)
    : backing_(std::move(backing)), rest_(rest), none_(std::make_unique<NoKernels>()) {
  if (!backing_.take) backing_.take = take;
  if (backing_.directory.empty()) return;
  Opened opened = unnamed(backing_);
  file_.emplace(std::move(opened.file));
  same_file_ = std::move(opened.again);
}

FileMemory::~FileMemory() = default;

StorageRef FileMemory::allocate(std::int64_t bytes, Use use) {
  const std::int64_t in_file =
      backing_.fraction >= 1 ? bytes
                             : std::min(bytes, std::int64_t(double(bytes) * backing_.fraction) / page * page);
  const std::int64_t at = end_;
  end_ = round_up(at + in_file, page);
  in_memory_ += bytes - in_file;
  if (file_ && in_file > 0) {
    const std::byte zero{};
    file_->write_at(end_ - 1, {&zero, 1});
  }
  StorageRef rest;
  if (in_file < bytes) {
    rest = rest_.allocate(bytes - in_file, use);
    const std::vector<std::byte> zeros(std::size_t(holds_numbers() ? bytes - in_file : 0));
    if (holds_numbers()) rest_.copy_from_host(*rest, 0, zeros.data(), std::int64_t(zeros.size())).wait();
  }
  auto region = std::make_unique<Region>(*this, Region::Bytes{bytes, in_file, at}, use, std::move(rest));
  return StorageRef(region.release());
}

void FileMemory::recycle(Storage& storage) noexcept {
  const std::unique_ptr<Region> owner(static_cast<Region*>(&storage));
}

Fence FileMemory::copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) {
  if (told_) told_(Copies::to_file);
  write(to, offset, from, bytes);
  return {};
}

void FileMemory::write(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) {
  if (!holds_numbers()) return;
  const auto* source = static_cast<const std::byte*>(from);
  static_cast<Region&>(to).each_part(
      offset, bytes,
      [&](std::int64_t at, std::int64_t count) {
        file_->write_at(at, {source, std::size_t(count)});
      },
      [&](Storage& memory, std::int64_t at, std::int64_t before, std::int64_t count) {
        rest_.copy_from_host(memory, at, source + before, count).wait();
      });
}

Fence FileMemory::copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) {
  if (told_) told_(Copies::from_file);
  read(to, from, offset, bytes);
  return {};
}

void FileMemory::read(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) const {
  if (!holds_numbers()) return;
  auto* target = static_cast<std::byte*>(to);
  static_cast<const Region&>(from).each_part(
      offset, bytes,
      [&](std::int64_t at, std::int64_t count) {
        file_->read_at(at, {target, std::size_t(count)});
      },
      [&](const Storage& memory, std::int64_t at, std::int64_t before, std::int64_t count) {
        rest_.copy_to_host(target + before, memory, at, count).wait();
      });
}

// A disk is asked only for what it says it has: some fill up before they find out that it is too much. One
// that cannot promise anything is believed.
bool FileMemory::reserve() {
  if (!file_ || reserved_ == end_) return true;
  if (bytes_to_reserve() > room()) return false;
  const int error = backing_.take(same_file_.get(), reserved_, bytes_to_reserve());
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return false;
  reserved_ = end_;
  return true;
}

std::int64_t FileMemory::room() const {
  if (!file_) return std::numeric_limits<std::int64_t>::max();
  std::error_code error;
  const auto space = std::filesystem::space(backing_.directory, error);
  return error ? std::numeric_limits<std::int64_t>::max() : std::int64_t(space.available);
}

}  // namespace weft
