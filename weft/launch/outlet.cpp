// Reads a pipe in large pieces; splits lines only for the console.
#include "weft/launch/outlet.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"

namespace weft::launch {
namespace {

Descriptor log_file(const std::filesystem::path& path) {
  // O_APPEND: a worker's children may write there too.
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file) fail_errno("write", path, errno);
  return file;
}

std::string tail_of(const std::filesystem::path& path, std::size_t most) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  const off_t size = lseek(file.get(), 0, SEEK_END);
  std::string out(std::min(most, std::size_t(std::max<off_t>(size, 0))), '\0');
  const ssize_t got = pread(file.get(), out.data(), out.size(), size - off_t(out.size()));
  out.resize(std::size_t(std::max<ssize_t>(got, 0)));
  return out;
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return;  // a full disk must not end the job that it logs
    bytes.remove_prefix(std::size_t(done));
  }
}

}  // namespace

Outlet::Outlet(Loop& loop, Ways ways) : loop_(loop), ways_(std::move(ways)) {
  if (!ways_.file.empty()) file_ = log_file(ways_.file);
  if (file_ && ways_.console == nullptr) {
    theirs_ = std::move(file_);
    return;
  }
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    fail(Kind::device, "launch: no pipe for a worker: ", std::strerror(errno));
  ours_ = Descriptor(ends[0]);
  theirs_ = Descriptor(ends[1]);
  fcntl(ours_.get(), F_SETFL, O_NONBLOCK);
  fcntl(ours_.get(), F_SETPIPE_SZ, 1 << 20);  // less is fine
  listen();
}

Outlet::~Outlet() {
  if (ways_.console != nullptr) ways_.console->cancel_ready(this);
  loop_.forget(ours_.get());
}

void Outlet::listen() {
  loop_.watch(ours_.get(), EPOLLIN, [this](std::uint32_t) {
    if (read_once() == Got::end) {
      loop_.forget(ours_.get());
      finish();
    } else if (ways_.console != nullptr && ways_.console->full()) {
      loop_.forget(ours_.get());
      ways_.console->when_ready(this, [this] { listen(); });
    }
  });
}

Outlet::Got Outlet::read_once() {
  std::string piece(256 << 10, '\0');
  const ssize_t got = read(ours_.get(), piece.data(), piece.size());
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Got::nothing : Got::end;
  if (got == 0) return Got::end;
  piece.resize(std::size_t(got));
  if (file_) write_all(file_.get(), piece);
  tail_.append(piece, piece.size() > kept ? piece.size() - kept : 0);
  if (tail_.size() > 2 * kept) tail_.erase(0, tail_.size() - kept);
  if (ways_.console != nullptr) to_console(piece);
  return Got::bytes;
}

void Outlet::to_console(std::string_view bytes) {
  const auto last = bytes.rfind('\n');
  if (last == std::string_view::npos) {
    line_ += bytes;
    if (line_.size() < longest_line) return;
    print(line_ + "\n");
    line_.clear();
    return;
  }
  if (!line_.empty()) {
    const auto first = bytes.find('\n');
    print(line_.append(bytes.substr(0, first + 1)));
    bytes.remove_prefix(first + 1);
    line_.clear();
  }
  const auto end = bytes.rfind('\n');
  if (end != std::string_view::npos) print(bytes.substr(0, end + 1));
  line_ = bytes.substr(end == std::string_view::npos ? 0 : end + 1);
}

void Outlet::print(std::string_view lines) {
  if (ways_.prefix.empty()) return ways_.console->write(lines);
  std::string out;
  while (!lines.empty()) {
    const auto end = lines.find('\n') + 1;
    out.append(ways_.prefix).append(lines.substr(0, end));
    lines.remove_prefix(end);
  }
  ways_.console->write(out);
}

void Outlet::drain() {
  // What the worker wrote before its end fits in the pipe; who else writes is not waited for.
  for (int pieces = 0; ours_ && pieces < 16; ++pieces)
    if (read_once() != Got::bytes) return;
}

void Outlet::finish() {
  if (!line_.empty() && ways_.console != nullptr) print(line_ + "\n");
  line_.clear();
}

std::string Outlet::last_words() const { return ours_ ? tail_ : tail_of(ways_.file, kept); }

std::string last_lines(std::string_view said, int lines) {
  said = trim(said);
  if (said.size() > 2048) said = said.substr(said.size() - 2048);
  std::size_t from = said.size();
  for (int i = 0; i < lines && from != 0 && from != std::string_view::npos; ++i)
    from = said.rfind('\n', from - 1);
  std::string out(from == std::string_view::npos || from == 0 ? said : said.substr(from + 1));
  for (char& c : out)
    if ((static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t') || c == 127) c = ' ';
  return out;
}

}  // namespace weft::launch
