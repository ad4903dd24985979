// Every message lists its fields once; writing and reading walk that list.
#include "weft/launch/message.h"

#include <bit>
#include <concepts>
#include <cstring>
#include <limits>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr std::uint32_t version =
    0x77660005;  // before a Join: other programs and other versions are told apart

void list(auto&, Beat&) {}
void list(auto&, Resigned&) {}
void list(auto& v, End& m) { v(m.code), v(m.signal); }
void list(auto& v, Failure& m) {
  v(m.rank), v(m.local_rank), v(m.ranks), v(m.node), v(m.placed), v(m.host), v(m.launcher), v(m.process);
  list(v, m.end), v(m.age), v(m.what), v(m.last_words), v(m.logs);
}
void list(auto& v, Join& m) {
  std::uint32_t here = version;
  v(here);
  if (here != version) fail(Kind::comm, "launch: an agent of another version, or another program");
  v(m.run_id), v(m.host), v(m.address), v(m.wanted_rank), v(m.slots), v(m.port);
  v(m.voter), v(m.round), v(m.restarts);
}
void list(auto& v, Failed& m) { v(m.round), list(v, m.failure); }
void list(auto& v, Stopped& m) { v(m.round), v(m.status), v(m.progress); }
void list(auto& v, Done& m) { v(m.round), v(m.status); }
void list(auto& v, Leaving& m) { v(m.signal); }
void list(auto& v, Peer& m) { v(m.address), v(m.slots); }
void list(auto& v, Begin& m) {
  v(m.round), v(m.restarts), v(m.max_restarts), v(m.node), v(m.nodes), v(m.first_rank), v(m.slots),
      v(m.world);
  v(m.master), v(m.port), v.items(m.peers);
}
void list(auto& v, Stop& m) { v(m.round), v(m.signal), v(m.grace); }
void list(auto& v, Finish& m) { v(m.code), v(m.report); }
void list(auto& v, Doing::Circle& m) { v(m.id), v(m.words), v(m.place); }
void list(auto& v, Doing& m) {
  v(m.round), v(m.rank), v(m.section), v(m.word), v(m.peer), v(m.step), v(m.number), v(m.circle), v(m.still);
  v(m.placed), v(m.node), v(m.host);
  v.items(m.circles);
}
void list(auto& v, Still& m) { v(m.round), v(m.is), v(m.limit); }
void list(auto& v, Pace& m) { v(m.round), v(m.rank), v(m.kin), v(m.steps), v(m.worked); }
void list(auto& v, PulseReading::Circle& m) { v(m.id), v(m.words), v(m.place), v(m.size); }
/// As a number that may be none of its words.
template <class Enum>
void list_word(auto& v, Enum& word) {
  auto number = static_cast<std::uint32_t>(word);
  v(number);
  word = static_cast<Enum>(number);
}
void list(auto& v, Vital& m) {
  PulseReading& r = m.reading;
  v(m.round), v(m.age), v(r.rank), v(r.kin), list_word(v, r.section), v(r.step), v(r.steps_done);
  v(r.longest_step), v(r.worked), v(r.longest_here), v(r.was_here), list_word(v, r.word), v(r.circle),
      v(r.peer);
  v(r.number), v.items(r.circles);
}
void list(auto& v, Whereabouts& m) {
  v(m.round), v(m.rank), v(m.node), v(m.local_rank), v(m.host), v(m.process);
}
void list(auto& v, Refused& m) { v(m.why); }

class Writer {
 public:
  explicit Writer(std::string& to) : to_(to) {}
  void operator()(const std::string& s) {
    (*this)(static_cast<std::uint32_t>(s.size()));
    to_ += s;
  }
  void operator()(double x) { (*this)(std::bit_cast<std::uint64_t>(x)); }
  void operator()(std::integral auto x) {
    for (std::size_t i = 0; i < sizeof x; ++i)
      to_ += static_cast<char>(static_cast<std::uint64_t>(x) >> (8 * i) & 255u);
  }
  template <class T>
  void items(std::vector<T>& of) {
    (*this)(static_cast<std::uint32_t>(of.size()));
    for (T& item : of) list(*this, item);
  }

 private:
  std::string& to_;
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view from) : left_(from) {}
  void operator()(std::string& s) {
    std::uint32_t size = 0;
    (*this)(size);
    s = take(size);
  }
  void operator()(double& x) {
    std::uint64_t bits = 0;
    (*this)(bits);
    x = std::bit_cast<double>(bits);
  }
  void operator()(std::integral auto& x) {
    std::uint64_t value = 0;
    const std::string_view bytes = take(sizeof x);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    x = static_cast<std::remove_reference_t<decltype(x)>>(value);
  }
  template <class T>
  void items(std::vector<T>& of) {
    std::uint32_t size = 0;
    (*this)(size);
    if (size > left_.size()) short_of();  // an item has a byte at least: nothing is reserved for a lie
    for (std::uint32_t i = 0; i < size; ++i) list(*this, of.emplace_back());
  }
  bool done() const { return left_.empty(); }

 private:
  [[noreturn]] static void short_of() { fail(Kind::comm, "launch: a message ends before its last field"); }
  std::string_view take(std::size_t bytes) {
    if (bytes > left_.size()) short_of();
    const std::string_view out = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return out;
  }
  std::string_view left_;
};

template <std::size_t At = 0>
Message read_kind(std::size_t kind, FieldReader& from) {
  if constexpr (At == std::variant_size_v<Message>) {
    fail(Kind::comm, "launch: message kind ", kind, " does not exist");
  } else {
    if (kind != At) return read_kind<At + 1>(kind, from);
    std::variant_alternative_t<At, Message> out;
    list(from, out);
    return out;
  }
}

}  // namespace

std::string encode(const Message& message) {
  std::string out(frame_head, '\0');
  Writer write(out);
  write(static_cast<std::uint8_t>(message.index()));
  Message copy = message;
  std::visit([&](auto& m) { list(write, m); }, copy);
  std::string head;
  Writer{head}(static_cast<std::uint32_t>(out.size() - frame_head));
  out.replace(0, frame_head, head);
  return out;
}

std::optional<Message> take_frame(std::string& bytes, std::size_t largest) {
  if (bytes.size() < frame_head) return std::nullopt;
  std::uint32_t size = 0;
  FieldReader head(std::string_view(bytes).substr(0, frame_head));
  head(size);
  if (size == 0 || size > largest) fail(Kind::comm, "launch: a frame of ", size, " bytes; at most ", largest);
  if (bytes.size() < frame_head + size) return std::nullopt;
  FieldReader body(std::string_view(bytes).substr(frame_head, size));
  std::uint8_t kind = 0;
  body(kind);
  Message out = read_kind(kind, body);
  if (!body.done()) fail(Kind::comm, "launch: a message goes on after its last field");
  bytes.erase(0, frame_head + size);
  return out;
}

}  // namespace weft::launch
