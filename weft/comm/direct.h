// Ranks whose GPUs reach each other by themselves: tensors go by lines (tensor/line.h), and what hosts have
// to say to each other by another circle.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/comm/passing.h"
#include "weft/tensor/line.h"

namespace weft {

/// The host waits for nothing but the first word of a circle, when its line is opened: all its ranks say that
/// at once. So it is with a circle's first letter, and letters go to the next rank and the one before, as
/// pipelines and rings send them; those of two ranks are read in the order in which they were sent. Numbers
/// of 16 bits are exchanged and added as trees, others by the lines in an order of theirs, but where all sums
/// must be trees. Tensors of the host's memory are said by the hosts.
class DirectCommunicator final : public PassingCommunicator {
 public:
  enum class Sums : std::uint8_t { of_lines, trees };
  /// `hosts`, `device` and `lines` outlive it and every word.
  DirectCommunicator(Communicator& hosts, Device& device, DeviceLines& lines, Sums sums = Sums::of_lines)
      : PassingCommunicator(hosts), device_(device), lines_(lines), sums_(sums) {}
  /// Of a circle that lives as long as this.
  DirectCommunicator(std::unique_ptr<Communicator> hosts, Device& device, DeviceLines& lines, Sums sums)
      : PassingCommunicator(std::move(hosts)), device_(device), lines_(lines), sums_(sums) {}

  const char* carrier() const override { return "NCCL"; }
  bool adds_as_trees() const override { return sums_ == Sums::trees && inner().adds_as_trees(); }
  bool keeps_letters() const override { return false; }
  Pending all_reduce(const Tensor& x, Reduce how) override;
  Pending all_gather(const Tensor& full, const Tensor& shard) override;
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override;
  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override;
  Pending broadcast(const Tensor& x, int root) override;
  Pending send(const Tensor& x, int to, int tag) override;
  Pending recv(const Tensor& x, int from, int tag) override;
  std::unique_ptr<Communicator> split(int color, int key) override;

  /// Whether ranks exchange the terms of such a sum and add them: of whole numbers any order is a tree's.
  static bool exchanges(Dtype dtype, Reduce how, bool trees);
  /// `ranks` ranks' shares of `elements`, as even as may be: what each of them adds then.
  struct Shares {
    std::int64_t elements;
    int ranks;
    std::int64_t first(int rank) const { return elements * rank / ranks; }
    std::int64_t count(int rank) const { return first(rank + 1) - first(rank); }
  };

 private:
  static constexpr int lanes = 2;  // by tag
  /// A line of two, for what one of them sends to the other.
  struct Way {
    int from, to, lane;
    std::unique_ptr<DeviceLine> line;
  };
  /// Whether it lies where the hosts read it.
  static bool is_the_hosts(const Tensor& x) { return x.device().host_visible(); }
  /// The circle's, behind what its device was asked for.
  DeviceLine& line();
  struct Ends {
    int from, to, tag;
  };
  DeviceLine& way(const char* word, const Ends& ends);
  void open_ways();
  /// What all ranks tell when a line is opened, so that one that opens another is found.
  std::vector<std::string> names(const char* what, const std::string& mine);
  bool by_parts(Dtype dtype, Reduce how) const;
  Pending all_reduce_by_parts(const Tensor& x, Reduce how);
  Pending reduce_scatter_by_parts(const Tensor& shard, const Tensor& full);

  Device& device_;
  DeviceLines& lines_;
  Sums sums_;
  std::unique_ptr<DeviceLine> line_;
  std::optional<std::vector<Way>> ways_;
  std::vector<DeviceLine::Piece> out_, in_;  // of the word that is said
};

}  // namespace weft
