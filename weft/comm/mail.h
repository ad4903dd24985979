// How bytes go between the processes of one circle, whoever carries them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft {

/// A message is matched by circle, kind, sender and tag, in the order in which it was sent. One thread's at a
/// time, but for rest().
class Mail {
 public:
  /// Messages that are under way together. What they read and write must live until all have arrived.
  class Batch {
   public:
    virtual ~Batch() = default;
    virtual void send(const void* from, std::int64_t bytes, int to) = 0;
    virtual void receive(void* to, std::int64_t bytes, int from) = 0;
    /// True once all have gone and come; it is then empty again. Does not wait. Fails where a message has
    /// another length than its receiver expects.
    virtual bool arrived() = 0;
  };
  enum class Kind : std::uint8_t { word, letter };
  struct Label {
    const char* word;  // for messages
    Kind kind;
    int tag;
  };
  /// A part of the circle: who named this color, in their new order, as ranks of this circle.
  struct Kin {
    int color, key;
    std::vector<int> members;
  };

  virtual ~Mail() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::unique_ptr<Batch> batch(const Label& label) = 0;
  /// Nothing has arrived in so many rounds of asking. Returns soon, as another thread may move what this one
  /// waits for.
  virtual void rest(int rounds) = 0;
  /// All ranks call it at once, in their kins.
  virtual std::unique_ptr<Mail> part(const Kin& kin) = 0;
  /// Fails where a rank of this circle is known to be gone; waits for nobody.
  virtual void check() {}
  /// Fails for a tag that this mail cannot carry.
  virtual void check_tag(int) const {}
};

/// The words over messages. Sums are added by us, so they are the trees that threads make. `pulse` may be
/// null, and outlives it.
std::unique_ptr<Communicator> speak_by(std::unique_ptr<Mail> world, Pulse* pulse);

}  // namespace weft
