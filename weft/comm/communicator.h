// A communicator is a circle of ranks that can speak. Every backend says the same few words.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/comm/pending.h"
#include "weft/tensor/tensor.h"

namespace weft {

class Pulse;

enum class Reduce : std::uint8_t { sum, max };

/// Tensors are contiguous, and words about them take their turn among what the tensors' device was asked for
/// (pending.h): the host need not wait, and where it is the device it has waited. Terms of sums are f32 (f64
/// for f64, integers for integers) with one rounding at the end, and the same call gives the same bits every
/// time. A rank that fails frees the others: their words throw.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Where this rank says what it is doing; null where nobody watches.
  virtual Pulse* pulse() const { return nullptr; }
  /// "threads", "MPI", …: the word for messages.
  virtual const char* carrier() const = 0;
  /// Fails where a rank is known to have failed; waits for nobody.
  virtual void check() const {}
  /// Whether every sum is the balanced binary tree in rank order, so that it has the same bits wherever that
  /// is said: exact mode asks for it.
  virtual bool adds_as_trees() const { return true; }

  /// Whether letters wait by tag until somebody asks for them; else those from one rank to another whose tags
  /// are both even, or both odd, are to be read in the order in which they were sent.
  virtual bool keeps_letters() const { return true; }

  /// Every rank's text, in rank order: what hosts have to say, apart from tensors and from any device's
  /// order.
  virtual std::vector<std::string> tell_all(const std::string& mine);
  /// Numbers become the reduction of every rank's, in the same way.
  virtual void agree(std::span<double> numbers, Reduce how);

  /// x becomes the reduction of every rank's x.
  virtual Pending all_reduce(const Tensor& x, Reduce how) = 0;
  /// full = every rank's shard, one after the other, along the first dimension.
  virtual Pending all_gather(const Tensor& full, const Tensor& shard) = 0;
  /// shard = this rank's part (along the first dimension) of the sum of every rank's full.
  virtual Pending reduce_scatter(const Tensor& shard, const Tensor& full) = 0;
  /// Sends in_rows[r] rows of in to rank r, receives out_rows[r] rows from it, both in rank order;
  /// the lists are read before it returns.
  virtual Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                             std::span<const std::int64_t> out_rows) = 0;
  virtual Pending broadcast(const Tensor& x, int root) = 0;
  virtual Pending send(const Tensor& x, int to, int tag) = 0;
  virtual Pending recv(const Tensor& x, int from, int tag) = 0;
  virtual void barrier() = 0;
  /// Ranks that name the same color form a new circle, ordered by key, then by rank.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
};

}  // namespace weft
