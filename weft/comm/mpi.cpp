// Messages by MPI: it moves bytes, and nothing else is asked of it.
#include "weft/comm/mpi.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/pulse.h"
#include "weft/comm/mail.h"

namespace weft {
namespace {

constexpr std::int64_t largest_message = std::int64_t{1} << 30;  // MPI counts in int

void check_mpi(int code, const char* word) {
  if (code == MPI_SUCCESS) return;
  std::string said(MPI_MAX_ERROR_STRING, ' ');
  int length = 0;
  MPI_Error_string(code, said.data(), &length);
  fail(Kind::comm, "mpi: ", word, ": ", said.substr(0, std::size_t(length)));
}

class MpiBatch final : public Mail::Batch {
 public:
  MpiBatch(const char* word, MPI_Comm circle, int tag) : word_(word), circle_(circle), tag_(tag) {}

  void send(const void* from, std::int64_t bytes, int to) override {
    for (std::int64_t at = 0; at < bytes; at += largest_message) {
      const int count = int(std::min(largest_message, bytes - at));
      messages_.push_back({to, -1});
      requests_.emplace_back();
      check_mpi(MPI_Isend(static_cast<const std::byte*>(from) + at, count, MPI_BYTE, to, tag_, circle_,
                          &requests_.back()),
                word_);
    }
  }
  void receive(void* to, std::int64_t bytes, int from) override {
    for (std::int64_t at = 0; at < bytes; at += largest_message) {
      const int count = int(std::min(largest_message, bytes - at));
      messages_.push_back({from, count});
      requests_.emplace_back();
      check_mpi(MPI_Irecv(static_cast<std::byte*>(to) + at, count, MPI_BYTE, from, tag_, circle_,
                          &requests_.back()),
                word_);
    }
  }
  bool arrived() override {
    if (requests_.empty()) return true;
    int done = 0;
    statuses_.resize(requests_.size());
    check_mpi(MPI_Testall(int(requests_.size()), requests_.data(), &done, statuses_.data()), word_);
    if (!done) return false;
    check_lengths();
    requests_.clear();
    messages_.clear();
    return true;
  }

 private:
  struct Message {
    int peer = 0;
    std::int64_t expected = -1;  // bytes; -1 for what is sent
  };
  void check_lengths() const {
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (messages_[i].expected < 0) continue;
      int bytes = 0;
      MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes);
      if (bytes != messages_[i].expected)
        fail(Kind::comm, word_, ": ", messages_[i].expected, " bytes are expected from rank ",
             messages_[i].peer, ", which sends ", bytes);
    }
  }
  const char* word_;
  MPI_Comm circle_;
  int tag_;
  std::vector<MPI_Request> requests_;
  std::vector<Message> messages_;
  std::vector<MPI_Status> statuses_;
};

class MpiMail final : public Mail {
 public:
  /// Takes over both; letters travel apart from words, which number themselves.
  MpiMail(MPI_Comm words, MPI_Comm letters) : words_(words), letters_(letters) {
    MPI_Comm_rank(words_, &rank_);
    MPI_Comm_size(words_, &size_);
  }
  ~MpiMail() override {
    if (std::uncaught_exceptions() > 0) return;  // the process is about to be ended
    MPI_Comm_free(&words_);
    MPI_Comm_free(&letters_);
  }
  MpiMail(const MpiMail&) = delete;
  MpiMail& operator=(const MpiMail&) = delete;
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Batch> batch(const Label& label) override {
    return std::make_unique<MpiBatch>(label.word, label.kind == Kind::word ? words_ : letters_, label.tag);
  }
  // Ranks may outnumber processors: after a while of asking, others get the processor.
  void rest(int rounds) override {
    if (rounds < 64) return;
    if (rounds < 512)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(40));
  }
  std::unique_ptr<Mail> part(const Kin& kin) override {
    MPI_Comm words, letters;
    check_mpi(MPI_Comm_split(words_, kin.color, kin.key, &words), "split");
    check_mpi(MPI_Comm_dup(words, &letters), "split");
    return std::make_unique<MpiMail>(words, letters);
  }
  void check_tag(int tag) const override {
    int* most = nullptr;
    int found = 0;
    MPI_Comm_get_attr(letters_, MPI_TAG_UB, static_cast<void*>(&most), &found);
    if (found && tag > *most)
      fail(weft::Kind::comm, "mpi: this MPI numbers messages up to ", *most, ", and this is number ", tag);
  }

 private:
  MPI_Comm words_, letters_;
  int rank_ = 0, size_ = 1;
};

std::unique_ptr<Mail> whole_world() {
  MPI_Comm words, letters;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &words), "world");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &letters), "world");
  return std::make_unique<MpiMail>(words, letters);
}

}  // namespace

bool mpi_is_built() { return true; }

void run_under_mpi(const std::function<void(Communicator&)>& body, const std::function<int()>& tell,
                   Pulse* pulse) {
  // A thread that saves speaks in turn with the one that trains (comm/messages.cpp).
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  try {
    if (provided < MPI_THREAD_SERIALIZED)
      fail(Kind::comm, "mpi: this MPI lets one thread of a process speak, and weft's take turns");
    const auto world = speak_by(whole_world(), pulse);
    body(*world);
    world->barrier();
  } catch (...) {
    MPI_Abort(MPI_COMM_WORLD, tell());
  }
  MPI_Finalize();
}

}  // namespace weft
