// Means over ranks that travel in one bit an element.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// DeepSpeed's compressed all-reduce, of many tensors in one go. A rank sends of every tensor the signs and
/// one size, and keeps what they leave out (the worker's error) for the next time; of the part it adds it
/// sends again signs and a size, and keeps that error too (the server's). All ranks get the same bits, and
/// the host waits for none of it. Where a tensor's elements are no whole bytes for every rank, zeros are
/// added that count in its size.
class SignReduction {
 public:
  /// Tensors of so many elements. Nothing is asked of the heap after this, but for messages.
  SignReduction(Device& device, Communicator& circle, std::span<const std::int64_t> elements);
  /// x f32 [elements], one a tensor, become their means over ranks, about. Collective.
  void reduce(std::span<const Tensor> x);
  void forget_errors();
  /// f32 [padded] and [padded / ranks] of each tensor.
  const std::vector<Tensor>& worker_errors() const { return worker_errors_; }
  const std::vector<Tensor>& server_errors() const { return server_errors_; }
  /// What a rank has sent to others until now.
  std::int64_t bytes_sent() const { return bytes_sent_; }

 private:
  /// Elements of one rank's part of a tensor, and where its bits stand among those of all tensors.
  struct RankPart {
    std::int64_t elements, at;
  };
  Tensor signs_of(const Tensor& bits, int rank, std::size_t tensor) const;
  Tensor own_size(std::size_t tensor) const;
  Tensor size_from(int rank, std::size_t tensor) const;
  void send_to_adders(std::span<const Tensor> x);
  void add_and_tell();
  void take(const Tensor& x, std::size_t tensor) const;

  Communicator& circle_;
  std::vector<RankPart> parts_;
  std::vector<Tensor> worker_errors_, server_errors_;
  Tensor mine_, theirs_;               // u8 [ranks, bytes of all parts]
  Tensor own_bits_;                    // u8 [bytes of all parts]
  Tensor own_sizes_, sizes_;           // f32 [tensors], [ranks, tensors]
  Tensor digits_;                      // of exact sums: squares, and ones
  Tensor scratch_;                     // f32, of the longest tensor
  std::vector<std::int64_t> one_row_;  // to and from every rank
  std::int64_t bytes_sent_ = 0;
};

}  // namespace weft
