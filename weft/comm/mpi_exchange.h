// Messages of MPI under way: a word is a few phases of them, and whoever waits moves all words on.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace weft {

/// Fails with MPI's own sentence.
void check_mpi(int code, const char* word);

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

}  // namespace weft
