// A head says whose message follows; its bytes go straight to whoever waits for it, or are kept.
#include "weft/comm/tcp_mail.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <exception>
#include <list>
#include <mutex>

#include "weft/base/error.h"
#include "weft/comm/circle.h"

namespace weft {
namespace {

struct Head {
  std::uint64_t circle = 0;
  std::uint32_t kind = 0;
  std::int32_t tag = 0;
  std::int64_t bytes = 0;
  bool same(const Head& o) const { return circle == o.circle && kind == o.kind && tag == o.tag; }
};

/// A message that this rank sends, or waits for.
struct Letter {
  Head head;  // as expected, where it is waited for
  std::byte* at = nullptr;
  std::int64_t done = 0;   // of head and body, where it is sent
  std::int64_t came = -1;  // the length that the sender gave it
  bool over = false;
};
using Held = std::shared_ptr<Letter>;

/// What came before it was asked for.
struct Early {
  Head head;
  std::vector<std::byte> bytes;
  std::int64_t got = 0;
  Held taker;  // asked for it while it was still coming
};

struct Peer {
  Descriptor socket;
  std::string gone;  // why; empty: it is there
  std::deque<Held> out;
  std::list<Held> wanted;
  std::list<Early> early;
  // Of the message that is coming in:
  Head head;
  std::size_t head_got = 0;
  std::int64_t body_got = 0;
  Held into;  // or
  Early* keeping = nullptr;
};

/// All connections of this process. Only wait() is for several threads at once.
class Post {
 public:
  explicit Post(std::vector<Descriptor> sockets) : peers_(sockets.size()) {
    for (std::size_t r = 0; r < sockets.size(); ++r) peers_[r].socket = std::move(sockets[r]);
  }
  void send(int to, const Held& letter);
  void expect(int from, const Held& letter);
  /// What can be moved now.
  void move();
  /// Until something can be moved, for at most so many milliseconds.
  void wait(int milliseconds);
  /// Fails where the rank is known to be gone.
  void must_reach(int rank) const;

 private:
  void push(Peer& peer);
  void pull(Peer& peer);
  bool pull_some(Peer& peer);
  void begin_body(Peer& peer);
  void end_body(Peer& peer);
  void lose(Peer& peer, const char* why);
  void ask_all(std::vector<pollfd>& asked) const;
  std::mutex mutex_;
  std::vector<Peer> peers_;
  std::vector<pollfd> asked_;
};

void give(Early& from, Letter& to) {
  to.came = from.head.bytes;
  if (to.came == to.head.bytes && to.came > 0) std::memcpy(to.at, from.bytes.data(), std::size_t(to.came));
  to.over = true;
}

void Post::lose(Peer& peer, const char* why) {
  if (peer.gone.empty()) peer.gone = why;
  peer.socket.reset();
}

void Post::send(int to, const Held& letter) {
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[std::size_t(to)];
  if (!peer.socket && peer.gone.empty()) {  // to ourselves
    Early early{.head = letter->head,
                .bytes = std::vector<std::byte>(letter->at, letter->at + letter->head.bytes),
                .got = letter->head.bytes,
                .taker = nullptr};
    letter->over = true;
    for (auto at = peer.wanted.begin(); at != peer.wanted.end(); ++at) {
      if (!(*at)->head.same(early.head)) continue;
      give(early, **at);
      peer.wanted.erase(at);
      return;
    }
    peer.early.push_back(std::move(early));
    return;
  }
  peer.out.push_back(letter);
  if (peer.out.size() == 1) push(peer);
}

void Post::expect(int from, const Held& letter) {
  Peer& peer = peers_[std::size_t(from)];
  for (auto at = peer.early.begin(); at != peer.early.end(); ++at) {
    if (at->taker || !at->head.same(letter->head)) continue;
    if (at->got < at->head.bytes) {
      at->taker = letter;
      return;
    }
    give(*at, *letter);
    peer.early.erase(at);
    return;
  }
  peer.wanted.push_back(letter);
}

void Post::push(Peer& peer) {
  while (peer.socket && !peer.out.empty()) {
    Letter& letter = *peer.out.front();
    constexpr auto head = std::int64_t{sizeof(Head)};
    const std::int64_t in_head = std::min(letter.done, head), in_body = letter.done - in_head;
    std::array<iovec, 2> parts{
        iovec{reinterpret_cast<std::byte*>(&letter.head) + in_head, std::size_t(head - in_head)},
        iovec{letter.at + in_body, std::size_t(letter.head.bytes - in_body)}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t done = sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EAGAIN) return;
    if (done < 0) return lose(peer, std::strerror(errno));
    letter.done += done;
    if (letter.done < head + letter.head.bytes) continue;
    letter.over = true;
    peer.out.pop_front();
  }
}

/// Finds who waits for the message whose head has come.
void Post::begin_body(Peer& peer) {
  peer.body_got = 0;
  for (auto at = peer.wanted.begin(); at != peer.wanted.end(); ++at) {
    if (!(*at)->head.same(peer.head)) continue;
    peer.into = *at;
    peer.into->came = peer.head.bytes;
    peer.wanted.erase(at);
    break;
  }
  if (peer.into && peer.into->head.bytes == peer.head.bytes) return;
  // Nobody yet, or somebody who expects another length, and will say so.
  peer.early.push_back({.head = peer.head,
                        .bytes = std::vector<std::byte>(std::size_t(peer.head.bytes)),
                        .got = 0,
                        .taker = std::exchange(peer.into, nullptr)});
  peer.keeping = &peer.early.back();
}

void Post::end_body(Peer& peer) {
  peer.head_got = 0;
  if (peer.into) peer.into->over = true;
  peer.into = nullptr;
  Early* const kept = std::exchange(peer.keeping, nullptr);
  if (kept == nullptr || !kept->taker) return;
  give(*kept, *kept->taker);
  peer.early.remove_if([kept](const Early& early) { return &early == kept; });
}

/// False where nothing more is there.
bool Post::pull_some(Peer& peer) {
  const bool in_head = peer.head_got < sizeof(Head);
  std::byte* to = reinterpret_cast<std::byte*>(&peer.head) + peer.head_got;
  std::size_t most = sizeof(Head) - peer.head_got;
  if (!in_head) {
    to = (peer.into ? peer.into->at : peer.keeping->bytes.data()) + peer.body_got;
    most = std::size_t(peer.head.bytes - peer.body_got);
  }
  const ssize_t got = recv(peer.socket.get(), to, most, 0);
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) return lose(peer, got == 0 ? "its connection was closed" : std::strerror(errno)), false;
  if (in_head) {
    peer.head_got += std::size_t(got);
    if (peer.head_got == sizeof(Head)) begin_body(peer);
  } else {
    peer.body_got += got;
    if (peer.keeping != nullptr) peer.keeping->got = peer.body_got;
  }
  if (peer.head_got == sizeof(Head) && peer.body_got == peer.head.bytes) end_body(peer);
  return true;
}

void Post::pull(Peer& peer) {
  while (peer.socket && pull_some(peer)) {
  }
}

void Post::ask_all(std::vector<pollfd>& asked) const {
  asked.clear();
  for (const Peer& peer : peers_)
    asked.push_back({.fd = peer.socket.get(),  // poll passes over -1
                     .events = short(POLLIN | (peer.out.empty() ? 0 : POLLOUT)),
                     .revents = 0});
}

void Post::move() {
  const std::lock_guard lock(mutex_);
  ask_all(asked_);
  if (poll(asked_.data(), asked_.size(), 0) <= 0) return;
  for (std::size_t r = 0; r < asked_.size(); ++r) {
    if ((asked_[r].revents & POLLOUT) != 0) push(peers_[r]);
    if ((asked_[r].revents & ~POLLOUT) != 0) pull(peers_[r]);
  }
}

void Post::wait(int milliseconds) {
  std::vector<pollfd> asked;
  {
    const std::lock_guard lock(mutex_);
    ask_all(asked);
  }
  poll(asked.data(), asked.size(), milliseconds);
}

void Post::must_reach(int rank) const {
  const std::string& why = peers_[std::size_t(rank)].gone;
  if (!why.empty()) throw BrokenOff(Kind::comm, text("rank ", rank, " is gone: ", why), Place{});
}

struct Ring {
  std::uint64_t id;
  std::vector<int> members;  // world ranks
};

class TcpBatch final : public Mail::Batch {
 public:
  TcpBatch(Post& post, const Ring& circle, const Mail::Label& label)
      : post_(post), circle_(circle), label_(label) {}

  void send(const void* from, std::int64_t bytes, int to) override {
    // Nothing is written through it: a letter that is sent is only read.
    under_way_.push_back({letter(const_cast<void*>(from), bytes), to, false});  // NOLINT(*-const-cast)
    post_.send(world(to), under_way_.back().letter);
  }
  void receive(void* to, std::int64_t bytes, int from) override {
    under_way_.push_back({letter(to, bytes), from, true});
    post_.expect(world(from), under_way_.back().letter);
  }
  bool arrived() override {
    if (under_way_.empty()) return true;
    if (!all_over()) post_.move();
    if (!all_over()) return false;
    for (const Sent& one : under_way_)
      if (one.received && one.letter->came != one.letter->head.bytes)
        fail(Kind::comm, label_.word, ": ", one.letter->head.bytes, " bytes are expected from rank ",
             one.peer, ", which sends ", one.letter->came);
    under_way_.clear();
    return true;
  }

 private:
  struct Sent {
    Held letter;
    int peer;
    bool received;
  };
  int world(int rank) const { return circle_.members[std::size_t(rank)]; }
  Held letter(void* at, std::int64_t bytes) const {
    return std::make_shared<Letter>(Letter{
        .head = {.circle = circle_.id, .kind = std::uint32_t(label_.kind), .tag = label_.tag, .bytes = bytes},
        .at = static_cast<std::byte*>(at)});
  }
  bool all_over() const {
    bool all = true;
    for (const Sent& one : under_way_) {
      if (one.letter->over) continue;
      all = false;
      post_.must_reach(world(one.peer));
    }
    return all;
  }
  Post& post_;
  const Ring& circle_;
  Mail::Label label_;
  std::vector<Sent> under_way_;
};

class TcpMail final : public Mail {
 public:
  TcpMail(std::shared_ptr<Post> post, Ring circle, int rank)
      : post_(std::move(post)), circle_(std::move(circle)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return int(circle_.members.size()); }
  std::unique_ptr<Batch> batch(const Label& label) override {
    return std::make_unique<TcpBatch>(*post_, circle_, label);
  }
  // Not long: what this thread waits for may have been moved by another one.
  void rest(int rounds) override {
    if (rounds >= 16) post_->wait(50);
  }
  void check() override {
    post_->move();
    for (const int member : circle_.members) post_->must_reach(member);
  }
  std::unique_ptr<Mail> part(const Kin& kin) override {
    ++parts_;
    Ring circle{((circle_.id * 1000003u + std::uint64_t(parts_)) * 1000003u) + std::uint64_t(kin.color) + 1u,
                {}};
    int place = 0;
    for (const int member : kin.members) {
      if (member == rank_) place = int(circle.members.size());
      circle.members.push_back(circle_.members[std::size_t(member)]);
    }
    return std::make_unique<TcpMail>(post_, std::move(circle), place);
  }

 private:
  std::shared_ptr<Post> post_;
  Ring circle_;
  int rank_, parts_ = 0;
};

}  // namespace

std::unique_ptr<Mail> tcp_mail(const TcpSeat& seat, std::vector<Descriptor> sockets) {
  Ring all{1, {}};
  for (int r = 0; r < seat.world; ++r) all.members.push_back(r);
  return std::make_unique<TcpMail>(std::make_shared<Post>(std::move(sockets)), std::move(all), seat.rank);
}

}  // namespace weft
