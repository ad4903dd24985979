// Tokens travel to the ranks that hold their experts, and what experts made of them travels back.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "weft/nn/expert_products.h"

namespace weft {

inline constexpr int most_expert_ranks = 256;

/// Where this rank stands among those that exchange tokens. In their circle ranks that share an expert are
/// neighbours, then come those that hold other experts, and where sequences are cut over more ranks than
/// that, exact sums want the others too, who hold the same experts again.
struct ExpertRanks {
  Communicator* circle = nullptr;
  int etp = 1, ep = 1;
  int sequence_ranks = 1;  // neighbours in the circle who hold parts of the same sequences
  SumRules sums = {};
  /// Where a device holds no numbers: how all rows are shared out among experts, [experts]; empty: evenly.
  std::vector<std::int64_t> loads = {};

  int ranks() const { return circle ? circle->size() : 1; }
  int rank() const { return circle ? circle->rank() : 0; }
  bool exchange() const { return ranks() > 1; }
  int copies() const { return ranks() / (etp * ep); }
  int copy_of(int rank) const { return rank / (etp * ep); }
  int ep_of(int rank) const { return rank / etp % ep; }
  /// Whole sequences whose tokens meet here.
  int sequences() const { return sums.whole_sequences() ? std::max(ranks() / sequence_ranks, 1) : 1; }
  /// Rows of a sequence come from several ranks, and experts read them in the order of its tokens.
  bool by_place() const { return exchange() && sums.whole_sequences() && sequence_ranks > 1; }
};

/// Rows that left and have not all come.
struct Travelling {
  Tensor came;
  Pending pending;
  Dtype dtype = Dtype::f32;  // of what they become, and of how many parts a sum of them is
  int parts = 1;
};

/// One pass's trip there and back: who sends how many rows to whom, and in which order experts read them.
class Exchange {
 public:
  Exchange() = default;
  /// offsets i64 [experts + 1], of all of them: where the rows for each begin that this rank sends. The host
  /// reads everybody's here, once; where a device holds no numbers there are `planned` rows.
  Exchange(const ExpertRanks& ranks, const Tensor& offsets, std::int64_t planned);
  /// All of these rows stay here, and the host does not ask whose they are.
  static Exchange unseen(const Tensor& offsets, std::int64_t rows);
  /// Every rank sends every expert `room` rows, so nobody asks how many.
  static Exchange filled(const ExpertRanks& ranks, std::int64_t experts, std::int64_t room);
  /// Before any row goes. places i32 [rows]: where in the sequence each row's token stands, read where rows
  /// go by place, and then once more by the host.
  void arrange(const Tensor& places);

  /// Rows [n, c] in the order of all experts begin their way; what the rank does meanwhile is its affair.
  Travelling leave(const Tensor& rows) const;
  /// Those that came to this rank, in the order of its own experts
  Tensor there(Travelling rows) const;
  /// The way back; terms [m, parts * c] f32 of ranks that share an expert are added, and the parts last
  Travelling leave_back(const Tensor& rows, Dtype dtype, int parts = 1) const;
  Tensor back(Travelling rows) const;
  /// Whether rows go anywhere.
  bool travels() const { return ranks_.exchange(); }
  /// Of this rank's experts.
  const RowGroups& groups() const { return groups_; }
  /// The same by expert and sequence.
  const RowGroups& sequences() const { return sequences_; }
  /// Rows that this rank sends of its own tokens.
  std::int64_t sent() const { return sent_; }

 private:
  using ByRank = std::array<std::int64_t, most_expert_ranks>;
  class Counts;
  void take(const Counts& counts);
  void count(const Counts& counts);
  void group(const Counts& counts);
  Tensor arrived_places(const Tensor& places) const;
  void order_by_rank(const Counts& counts, std::span<std::int32_t> order) const;
  void order_by_place(const Tensor& arrived, std::span<std::int32_t> order) const;
  Tensor homes(Device& device, std::span<const std::int32_t> order) const;
  void find_homes(std::span<const std::int32_t> order, std::span<std::int32_t> home) const;
  Tensor copies_for_all(const Tensor& rows) const;
  Tensor turned(const Tensor& rows, std::int64_t blocks) const;
  Tensor by_rank(const Tensor& rows) const;
  std::span<const std::int64_t> all(const ByRank& by) const {
    return {by.data(), std::size_t(ranks_.ranks())};
  }

  ExpertRanks ranks_;
  RowGroups groups_, sequences_;
  ByRank to_{}, from_{};                                     // rows there
  ByRank returned_{}, received_{};                           // and back
  std::array<std::int64_t, most_expert_ranks + 1> block_{};  // where the rows for each ep rank start
  Tensor order_,
      home_;  // i32: which arrived row an expert's row is, and which of those an arrived one became
  std::int64_t sent_ = 0, kept_ = 0;
  std::int64_t room_ = 0;  // of an expert for a rank's rows, where it is filled up; then there is no order
};

}  // namespace weft
