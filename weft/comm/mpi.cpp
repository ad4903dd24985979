// The words over MPI: it moves bytes, and we add, so that sums are the trees that threads make.
#include "weft/comm/mpi.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <list>
#include <span>
#include <thread>
#include <vector>

#include "weft/base/error.h"
#include "weft/comm/checks.h"
#include "weft/comm/tree_sum.h"

namespace weft {
namespace {

constexpr int word_tags = 32767;              // every MPI has as many
constexpr std::int64_t small_sum = 16 << 10;  // bytes: up to here one trip is worth more than few bytes

constexpr std::int64_t largest_message = std::int64_t{1} << 30;  // MPI counts in int

// Ranks may outnumber processors: after a while of asking, others get the processor.
void rest(int rounds) {
  if (rounds < 64) return;
  if (rounds < 512)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(40));
}

void check_mpi(int code, const char* word) {
  if (code == MPI_SUCCESS) return;
  std::string said(MPI_MAX_ERROR_STRING, ' ');
  int length = 0;
  MPI_Error_string(code, said.data(), &length);
  fail(Kind::comm, "mpi: ", word, ": ", said.substr(0, std::size_t(length)));
}

/// One word of one rank. Phases follow each other when all messages of the one before have arrived; what they
/// touch is held by what they capture.
class Exchange {
 public:
  using Phase = std::function<void(Exchange&)>;
  Exchange(const char* word, MPI_Comm circle, int tag) : word_(word), circle_(circle), tag_(tag) {}

  void send(const void* from, std::int64_t bytes, int to);
  void receive(void* to, std::int64_t bytes, int from);
  /// Room for what others send, kept until the word is done.
  std::byte* scratch(std::int64_t bytes);
  void then(Phase phase) { phases_.push_back(std::move(phase)); }
  /// Goes on as far as it can without waiting; true when all is done.
  bool advance();

 private:
  struct Message {
    int peer = 0;
    std::int64_t expected = -1;  // bytes; -1 for what is sent
  };
  void check_arrived(const std::vector<MPI_Status>& statuses) const;
  const char* word_;
  MPI_Comm circle_;
  int tag_;
  std::vector<MPI_Request> requests_;
  std::vector<Message> messages_;
  std::vector<MPI_Status> statuses_;
  std::vector<Phase> phases_;
  std::size_t next_phase_ = 0;
  std::vector<std::vector<std::byte>> scratch_;
};

/// All words of this process. Ranks may finish words in different orders, so waiting for one moves the
/// others.
class Exchanges {
 public:
  std::shared_ptr<Exchange> begin(std::shared_ptr<Exchange> exchange);
  void finish(const Exchange& exchange);

 private:
  bool advance_all(const Exchange& wanted);
  std::list<std::shared_ptr<Exchange>> under_way_;
};

void Exchange::send(const void* from, std::int64_t bytes, int to) {
  for (std::int64_t at = 0; at < bytes; at += largest_message) {
    const int count = int(std::min(largest_message, bytes - at));
    messages_.push_back({to, -1});
    requests_.emplace_back();
    check_mpi(MPI_Isend(static_cast<const std::byte*>(from) + at, count, MPI_BYTE, to, tag_, circle_,
                        &requests_.back()),
              word_);
  }
}

void Exchange::receive(void* to, std::int64_t bytes, int from) {
  for (std::int64_t at = 0; at < bytes; at += largest_message) {
    const int count = int(std::min(largest_message, bytes - at));
    messages_.push_back({from, count});
    requests_.emplace_back();
    check_mpi(
        MPI_Irecv(static_cast<std::byte*>(to) + at, count, MPI_BYTE, from, tag_, circle_, &requests_.back()),
        word_);
  }
}

std::byte* Exchange::scratch(std::int64_t bytes) {
  scratch_.emplace_back(std::size_t(bytes));
  return scratch_.back().data();
}

void Exchange::check_arrived(const std::vector<MPI_Status>& statuses) const {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].expected < 0) continue;
    int bytes = 0;
    MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
    if (bytes != messages_[i].expected)
      fail(Kind::comm, word_, ": ", messages_[i].expected, " bytes are expected from rank ",
           messages_[i].peer, ", which sends ", bytes);
  }
}

bool Exchange::advance() {
  while (true) {
    if (!requests_.empty()) {
      int done = 0;
      statuses_.resize(requests_.size());
      check_mpi(MPI_Testall(int(requests_.size()), requests_.data(), &done, statuses_.data()), word_);
      if (!done) return false;
      check_arrived(statuses_);
      requests_.clear();
      messages_.clear();
    }
    if (next_phase_ == phases_.size()) return true;
    phases_[next_phase_++](*this);
  }
}

std::shared_ptr<Exchange> Exchanges::begin(std::shared_ptr<Exchange> exchange) {
  if (!exchange->advance()) under_way_.push_back(exchange);
  return exchange;
}

bool Exchanges::advance_all(const Exchange& wanted) {
  bool found = false;
  for (auto at = under_way_.begin(); at != under_way_.end();) {
    const bool done = (*at)->advance();
    found = found || (at->get() == &wanted && !done);
    at = done ? under_way_.erase(at) : std::next(at);
  }
  return !found;
}

void Exchanges::finish(const Exchange& exchange) {
  for (int rounds = 0; !advance_all(exchange); ++rounds) rest(rounds);
}

std::byte* bytes_at(const Tensor& x, std::int64_t offset) {
  return static_cast<std::byte*>(x.address()) + offset;
}

void move_bytes(void* to, const void* from, std::int64_t bytes) {
  if (to != from && bytes > 0) std::memmove(to, from, std::size_t(bytes));
}

/// A run of bytes of x that one rank reduces for all.
struct Slice {
  std::int64_t from, bytes;
};
Slice slice_of(const Tensor& x, int rank, int ranks) {
  const std::int64_t n = x.elements(), unit = size_of(x.dtype());
  const std::int64_t first = n * rank / ranks;
  return {first * unit, (n * (rank + 1) / ranks - first) * unit};
}

class MpiCommunicator final : public Communicator {
 public:
  /// Takes over both; letters travel apart from words, which number themselves.
  MpiCommunicator(std::shared_ptr<Exchanges> exchanges, MPI_Comm words, MPI_Comm letters)
      : exchanges_(std::move(exchanges)), words_(words), letters_(letters) {
    MPI_Comm_rank(words_, &rank_);
    MPI_Comm_size(words_, &size_);
  }
  ~MpiCommunicator() override {
    if (std::uncaught_exceptions() > 0) return;  // the process is about to be ended
    MPI_Comm_free(&words_);
    MPI_Comm_free(&letters_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Pending all_reduce(const Tensor& x, Reduce how) override {
    require_contiguous("all_reduce", x);
    if (size_ == 1 || x.elements() == 0) return {};
    return x.bytes() * size_ <= small_sum ? reduce_here(x, how) : reduce_in_slices(x, how);
  }

  Pending all_gather(const Tensor& full, const Tensor& shard) override {
    require_parts("all_gather", full, shard, size());
    move_bytes(bytes_at(full, rank_ * shard.bytes()), shard.address(), shard.bytes());
    auto exchange = word("all_gather");
    exchange->then([this, full, shard](Exchange& e) {
      for_others([&](int r) { e.receive(bytes_at(full, r * shard.bytes()), shard.bytes(), r); });
      for_others([&](int r) { e.send(shard.address(), shard.bytes(), r); });
    });
    return begin(std::move(exchange));
  }

  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override {
    require_parts("reduce_scatter", full, shard, size());
    auto exchange = word("reduce_scatter");
    std::byte* parts = exchange->scratch(shard.bytes() * size_);
    const auto part_of = [parts, shard](int r) { return parts + r * shard.bytes(); };
    exchange->then([this, full, shard, part_of](Exchange& e) {
      for_others([&](int r) { e.receive(part_of(r), shard.bytes(), r); });
      for_others([&](int r) { e.send(bytes_at(full, r * shard.bytes()), shard.bytes(), r); });
      move_bytes(part_of(rank_), bytes_at(full, rank_ * shard.bytes()), shard.bytes());
    });
    exchange->then([this, shard, part_of](Exchange&) { add(shard, Reduce::sum, part_of); });
    return begin(std::move(exchange));
  }

  Pending broadcast(const Tensor& x, int root) override {
    require_contiguous("broadcast", x);
    auto exchange = word("broadcast");
    exchange->then([this, x, root](Exchange& e) {
      if (rank_ != root) return e.receive(x.address(), x.bytes(), root);
      for_others([&](int r) { e.send(x.address(), x.bytes(), r); });
    });
    return begin(std::move(exchange));
  }

  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override {
    require_contiguous("all_to_all", out);
    require_contiguous("all_to_all", in);
    std::int64_t row = size_of(in.dtype());
    for (int i = 1; i < in.rank(); ++i) row *= in.dim(i);
    auto exchange = word("all_to_all");
    exchange->then([&, row](Exchange& e) {
      std::int64_t from = 0, to = 0;
      for (int r = 0; r < size_; ++r) {
        const std::int64_t given = in_rows[std::size_t(r)] * row, taken = out_rows[std::size_t(r)] * row;
        if (r == rank_)
          move_bytes(bytes_at(out, to), bytes_at(in, from), given);
        else {
          e.receive(bytes_at(out, to), taken, r);
          e.send(bytes_at(in, from), given, r);
        }
        from += given;
        to += taken;
      }
    });
    exchanges_->finish(*exchanges_->begin(exchange));  // the caller's lists need not outlive the call
    return {};
  }

  Pending send(const Tensor& x, int to, int tag) override {
    require_contiguous("send", x);
    auto exchange = std::make_shared<Exchange>("send", letters_, checked(tag));
    exchange->then([x, to](Exchange& e) { e.send(x.address(), x.bytes(), to); });
    return begin(std::move(exchange));
  }
  Pending recv(const Tensor& x, int from, int tag) override {
    require_contiguous("recv", x);
    auto exchange = std::make_shared<Exchange>("recv", letters_, checked(tag));
    exchange->then([x, from](Exchange& e) { e.receive(x.address(), x.bytes(), from); });
    return begin(std::move(exchange));
  }

  void barrier() override {
    auto exchange = word("barrier");
    std::byte* parts = exchange->scratch(size_);
    exchange->then([this, parts](Exchange& e) {
      for_others([&](int r) { e.receive(parts + r, 1, r); });
      for_others([&](int r) { e.send(parts + rank_, 1, r); });
    });
    exchanges_->finish(*exchanges_->begin(exchange));
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    barrier();  // from here on nobody waits for a word of ours, and MPI may block
    MPI_Comm words, letters;
    check_mpi(MPI_Comm_split(words_, color, key, &words), "split");
    check_mpi(MPI_Comm_dup(words, &letters), "split");
    return std::make_unique<MpiCommunicator>(exchanges_, words, letters);
  }

 private:
  // Starts with the next rank, so that not all send to the same one first.
  template <class Body>
  void for_others(const Body& body) const {
    for (int i = 1; i < size_; ++i) body((rank_ + i) % size_);
  }
  std::shared_ptr<Exchange> word(const char* name) {
    number_ = (number_ + 1) % word_tags;
    return std::make_shared<Exchange>(name, words_, number_);
  }
  int checked(int tag) const {
    int* most = nullptr;
    int found = 0;
    MPI_Comm_get_attr(letters_, MPI_TAG_UB, static_cast<void*>(&most), &found);
    if (found && tag > *most)
      fail(Kind::comm, "mpi: this MPI numbers messages up to ", *most, ", and this is number ", tag);
    return tag;
  }
  Pending begin(std::shared_ptr<Exchange> exchange) {
    return Pending([exchanges = exchanges_, exchange = exchanges_->begin(std::move(exchange))] {
      if (std::uncaught_exceptions() > 0) return;  // the peer may wait for a word that will never be said
      exchanges->finish(*exchange);
    });
  }
  template <class PartOf>
  void add(const Tensor& out, Reduce how, const PartOf& part_of) const {
    add_at(out.address(), {out.dtype(), how, out.elements()}, part_of);
  }
  template <class PartOf>
  void add_at(void* out, const Reduction& what, const PartOf& part_of) const {
    std::vector<const void*> parts;
    for (int r = 0; r < size_; ++r) parts.push_back(part_of(r));
    reduce_parts(what, {&out, 1}, parts);
  }

  // Everybody sends everything and adds it all.
  Pending reduce_here(const Tensor& x, Reduce how) {
    auto exchange = word("all_reduce");
    std::byte* parts = exchange->scratch(x.bytes() * size_);
    const auto part_of = [parts, x](int r) { return parts + r * x.bytes(); };
    exchange->then([this, x, part_of](Exchange& e) {
      move_bytes(part_of(rank_), x.address(), x.bytes());
      for_others([&](int r) { e.receive(part_of(r), x.bytes(), r); });
      for_others([&](int r) { e.send(part_of(rank_), x.bytes(), r); });
    });
    exchange->then([this, x, how, part_of](Exchange&) { add(x, how, part_of); });
    return begin(std::move(exchange));
  }

  // Every rank adds its slice for all, and sends it to all.
  Pending reduce_in_slices(const Tensor& x, Reduce how) {
    auto exchange = word("all_reduce");
    const Slice mine = slice_of(x, rank_, size_);
    std::byte* parts = exchange->scratch(mine.bytes * size_);
    const auto part_of = [parts, mine](int r) { return parts + r * mine.bytes; };
    exchange->then([this, x, mine, part_of](Exchange& e) {
      for_others([&](int r) { e.receive(part_of(r), mine.bytes, r); });
      for_others([&](int r) {
        const Slice slice = slice_of(x, r, size_);
        e.send(bytes_at(x, slice.from), slice.bytes, r);
      });
      move_bytes(part_of(rank_), bytes_at(x, mine.from), mine.bytes);
    });
    exchange->then([this, x, how, mine, part_of](Exchange& e) {
      add_at(bytes_at(x, mine.from), {x.dtype(), how, mine.bytes / size_of(x.dtype())}, part_of);
      for_others([&](int r) {
        const Slice slice = slice_of(x, r, size_);
        e.receive(bytes_at(x, slice.from), slice.bytes, r);
      });
      for_others([&](int r) { e.send(bytes_at(x, mine.from), mine.bytes, r); });
    });
    return begin(std::move(exchange));
  }

  std::shared_ptr<Exchanges> exchanges_;
  MPI_Comm words_, letters_;
  int rank_ = 0, size_ = 1, number_ = 0;
};

std::unique_ptr<Communicator> whole_world() {
  MPI_Comm words, letters;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &words), "world");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &letters), "world");
  return std::make_unique<MpiCommunicator>(std::make_shared<Exchanges>(), words, letters);
}

}  // namespace

bool mpi_is_built() { return true; }

void run_under_mpi(const std::function<void(Communicator&)>& body, const std::function<int()>& tell) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  try {
    if (provided < MPI_THREAD_FUNNELED)
      fail(Kind::comm, "mpi: this MPI allows no other threads in a process");
    const auto world = whole_world();
    body(*world);
    world->barrier();
  } catch (...) {
    MPI_Abort(MPI_COMM_WORLD, tell());
  }
  MPI_Finalize();
}

}  // namespace weft
