// Circles that count what their rank gives and takes in every word, and pass the word on.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "weft/comm/communicator.h"

namespace weft::testing {

/// Bytes by word: of what a rank reduces and scatters the whole, of what it gathers the whole.
using Volumes = std::map<std::string, std::int64_t>;

class CountingCommunicator : public Communicator {
 public:
  CountingCommunicator(Communicator& speaks, Volumes& volumes) : speaks_(speaks), volumes_(volumes) {}
  int rank() const override { return speaks_.rank(); }
  int size() const override { return speaks_.size(); }
  const char* carrier() const override { return speaks_.carrier(); }
  Pending all_reduce(const Tensor& x, Reduce how) override {
    count("all_reduce", x);
    return speaks_.all_reduce(x, how);
  }
  Pending all_gather(const Tensor& full, const Tensor& shard) override {
    count("all_gather", full);
    return speaks_.all_gather(full, shard);
  }
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override {
    count("reduce_scatter", full);
    return speaks_.reduce_scatter(shard, full);
  }
  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override {
    count("all_to_all", in);
    return speaks_.all_to_all(out, in, in_rows, out_rows);
  }
  Pending broadcast(const Tensor& x, int root) override {
    count("broadcast", x);
    return speaks_.broadcast(x, root);
  }
  Pending send(const Tensor& x, int to, int tag) override {
    count("send", x);
    return speaks_.send(x, to, tag);
  }
  Pending recv(const Tensor& x, int from, int tag) override { return speaks_.recv(x, from, tag); }
  void barrier() override { speaks_.barrier(); }
  std::unique_ptr<Communicator> split(int color, int key) override;

 private:
  void count(const char* word, const Tensor& x) {
    if (size() > 1) volumes_[word] += x.bytes();
  }
  class Child;
  Communicator& speaks_;
  Volumes& volumes_;
};

class CountingCommunicator::Child final : public Communicator {
 public:
  Child(std::unique_ptr<Communicator> speaks, Volumes& volumes)
      : speaks_(std::move(speaks)), counts_(*speaks_, volumes) {}
  int rank() const override { return counts_.rank(); }
  int size() const override { return counts_.size(); }
  const char* carrier() const override { return counts_.carrier(); }
  Pending all_reduce(const Tensor& x, Reduce how) override { return counts_.all_reduce(x, how); }
  Pending all_gather(const Tensor& full, const Tensor& shard) override {
    return counts_.all_gather(full, shard);
  }
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override {
    return counts_.reduce_scatter(shard, full);
  }
  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override {
    return counts_.all_to_all(out, in, in_rows, out_rows);
  }
  Pending broadcast(const Tensor& x, int root) override { return counts_.broadcast(x, root); }
  Pending send(const Tensor& x, int to, int tag) override { return counts_.send(x, to, tag); }
  Pending recv(const Tensor& x, int from, int tag) override { return counts_.recv(x, from, tag); }
  void barrier() override { counts_.barrier(); }
  std::unique_ptr<Communicator> split(int color, int key) override { return counts_.split(color, key); }

 private:
  std::unique_ptr<Communicator> speaks_;
  CountingCommunicator counts_;
};

inline std::unique_ptr<Communicator> CountingCommunicator::split(int color, int key) {
  return std::make_unique<Child>(speaks_.split(color, key), volumes_);
}

}  // namespace weft::testing
