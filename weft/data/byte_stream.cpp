// Plain, gzip and zstd files as streams. A stream that ends too early or holds something else is refused by
// name.
#include "weft/data/byte_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <array>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft::data {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 18;

// A window of 128 MiB is the most that zstd's own tool makes without being told to; a header that asks for
// more is refused.
constexpr int most_window_log = 27;

class Plain : public ByteStream {
 public:
  explicit Plain(const std::filesystem::path& path) : file_(path, Open::read), size_(file_.size()) {}
  std::size_t read(std::span<std::byte> to) override { return file_.read(to); }
  std::int64_t bytes_read() const override { return file_.at(); }
  std::int64_t file_size() const override { return size_; }

 private:
  File file_;
  std::int64_t size_;
};

// What the two kinds of packed files share: input by chunks, and the end of the file inside a stream as an
// error.
class Unpacked : public ByteStream {
 public:
  explicit Unpacked(const std::filesystem::path& path)
      : file_(path, Open::read), size_(file_.size()), chunk_(chunk_bytes) {}
  std::size_t read(std::span<std::byte> to) override {
    std::size_t done = 0;
    while (done < to.size()) {
      if (input_.empty() && !more_ && !refill()) break;
      const std::size_t made = unpack(to.subspan(done));
      done += made;
      more_ = done == to.size() && made > 0;  // it may hold more than there was room for
    }
    return done;
  }
  std::int64_t bytes_read() const override { return file_.at(); }
  std::int64_t file_size() const override { return size_; }

 protected:
  /// Moves input_ on; returns what it made. An empty input_ asks for what is held back.
  virtual std::size_t unpack(std::span<std::byte> to) = 0;
  /// Whether a stream has begun and not ended.
  virtual bool inside() const = 0;
  [[noreturn]] void damaged(const char* what) const {
    fail(Kind::data, file_.path().string(), ": ", what, " near byte ",
         file_.at() - static_cast<std::int64_t>(input_.size()), " of ", size_);
  }

  std::span<const std::byte> input_;

 private:
  bool refill() {
    const std::size_t count = file_.read(chunk_);
    input_ = std::span(chunk_).first(count);
    if (count == 0 && inside()) damaged("the packed data ends in the middle");
    return count > 0;
  }

  File file_;
  std::int64_t size_;
  bool more_ = false;
  std::vector<std::byte> chunk_;
};

class Gzip : public Unpacked {
 public:
  explicit Gzip(const std::filesystem::path& path) : Unpacked(path) {
    if (inflateInit2(&state_, 15 + 16) != Z_OK)
      fail(Kind::device, path.string(), ": no memory to unpack gzip");
  }
  ~Gzip() override { inflateEnd(&state_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

 protected:
  std::size_t unpack(std::span<std::byte> to) override {
    if (input_.empty() && !inside_) return 0;
    // A file may be several streams, one behind the other.
    if (!inside_ && inflateReset(&state_) != Z_OK) damaged("gzip cannot begin anew");
    inside_ = true;
    const auto room = static_cast<uInt>(std::min<std::size_t>(to.size(), 1U << 30));
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input_.data()));
    state_.avail_in = static_cast<uInt>(input_.size());
    state_.next_out = reinterpret_cast<Bytef*>(to.data());
    state_.avail_out = room;
    const int result = inflate(&state_, Z_NO_FLUSH);
    input_ = input_.last(state_.avail_in);
    if (result == Z_STREAM_END) {
      inside_ = false;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      damaged("the gzip data is damaged");
    }
    return room - state_.avail_out;
  }
  bool inside() const override { return inside_; }

 private:
  z_stream state_{};
  bool inside_ = false;
};

class Zstd : public Unpacked {
 public:
  explicit Zstd(const std::filesystem::path& path)
      : Unpacked(path), state_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    if (!state_) fail(Kind::device, path.string(), ": no memory to unpack zstd");
    ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, most_window_log);
  }

 protected:
  std::size_t unpack(std::span<std::byte> to) override {
    if (input_.empty() && !inside_) return 0;
    ZSTD_inBuffer in{input_.data(), input_.size(), 0};
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    const std::size_t result = ZSTD_decompressStream(state_.get(), &out, &in);
    if (ZSTD_isError(result)) damaged("the zstd data is damaged");
    input_ = input_.subspan(in.pos);
    inside_ = result != 0;
    return out.pos;
  }
  bool inside() const override { return inside_; }

 private:
  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> state_;
  bool inside_ = false;
};

std::array<unsigned char, 4> first_bytes(const std::filesystem::path& path) {
  std::array<unsigned char, 4> bytes{};
  File file(path, Open::read);
  static_cast<void>(file.read(std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

enum class Packing { none, gzip, zstd };

Packing packing_of(const std::filesystem::path& path) {
  const auto begin = first_bytes(path);
  if (begin[0] == 0x1f && begin[1] == 0x8b) return Packing::gzip;
  return begin == std::array<unsigned char, 4>{0x28, 0xb5, 0x2f, 0xfd} ? Packing::zstd : Packing::none;
}

}  // namespace

bool is_packed(const std::filesystem::path& path) { return packing_of(path) != Packing::none; }

std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path) {
  switch (packing_of(path)) {
    case Packing::gzip:
      return std::make_unique<Gzip>(path);
    case Packing::zstd:
      return std::make_unique<Zstd>(path);
    case Packing::none:
      break;
  }
  return std::make_unique<Plain>(path);
}

}  // namespace weft::data
