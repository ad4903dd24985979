// A device that does what it is asked for later, on a thread of its own and in the order of asking, as a GPU
// does; and communicators whose words take their turn there. With the arithmetic of another device.
#pragma once

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/base/error.h"
#include "weft/comm/communicator.h"
#include "weft/tensor/kernels.h"

namespace weft::testing {

/// at_once: as soon as the thread comes to it, beside the host. when_waited: not before the host waits, so
/// that whoever looks too early sees nothing of it, every time.
enum class Late { at_once, when_waited };

/// Copies to the device are taken when they are asked for, up to this many bytes: longer ones have a fence.
inline constexpr std::int64_t taken_at_once = 1024;

/// Whether this thread is some device's.
inline thread_local bool on_a_device = false;

class LateDevice;

/// Calls go into the device's queue, with operands of their own.
class LateKernels final : public Kernels {
 public:
  explicit LateKernels(LateDevice& device) : device_(device) {}
  const char* name() const override { return "late"; }
  /// The host's offsets may be gone when its turn comes.
  void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                      const MatmulArgs& how) override;

 private:
  void hand_on(const KernelCall& call) override;
  LateDevice& device_;
};

class LateDevice final : public Device {
 public:
  LateDevice(std::unique_ptr<Device> arithmetic, Late when)
      : arithmetic_(std::move(arithmetic)), when_(when), worker_([this] { work(); }) {}
  LateDevice(const LateDevice&) = delete;
  LateDevice& operator=(const LateDevice&) = delete;
  ~LateDevice() override {
    {
      const std::lock_guard lock(mutex_);
      may_do_ = asked_;
      ends_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  const char* name() const override { return "late"; }
  /// What is in it are no numbers.
  StorageRef allocate(std::int64_t bytes, Use use) override {
    const auto room = std::size_t(bytes + 64) / 64 * 64;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, room));
    std::memset(memory, 0xff, room);
    return StorageRef(std::make_unique<Storage>(*this, memory, bytes, use).release());
  }
  void recycle(Storage& storage) noexcept override {
    const std::unique_ptr<Storage> owner(&storage);
    std::free(storage.data());
  }
  Kernels& kernels() override { return kernels_; }
  /// To devices' own threads only (one may read what another sends): a host that reads is a fault.
  bool host_visible() const override { return on_a_device; }
  Fence copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) override {
    const auto* first = static_cast<const std::byte*>(from);
    if (bytes > taken_at_once) {
      ask([ref = StorageRef(&to), offset, first, bytes] {
        std::memcpy(ref->data() + offset, first, std::size_t(bytes));
      });
      return fence();
    }
    ask([ref = StorageRef(&to), offset, taken = std::vector<std::byte>(first, first + bytes)] {
      if (!taken.empty()) std::memcpy(ref->data() + offset, taken.data(), taken.size());
    });
    return {};
  }
  Fence copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) override {
    if (bytes > 0) std::memset(to, 0xff, std::size_t(bytes));  // for whoever does not wait
    ask([to, ref = StorageRef(const_cast<Storage*>(&from)), offset, bytes] {
      if (bytes > 0) std::memcpy(to, ref->data() + offset, std::size_t(bytes));
    });
    return fence();
  }
  Fence fence() override {
    const std::lock_guard lock(mutex_);
    return {*this, asked_};
  }
  void forbid_fresh_memory(bool) override {}
  MemoryMeter memory() const override { return {}; }
  void forget_peaks() override {}

  void ask(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      ++asked_;
      if (when_ == Late::at_once) may_do_ = asked_;
    }
    changed_.notify_all();
  }
  Device& arithmetic() { return *arithmetic_; }
  /// How often the host asked for a fence that had not been reached, or need not have been.
  int waits() const { return waits_; }

 private:
  void wait_for(std::uint64_t place) override {
    std::unique_lock lock(mutex_);
    if (waited_for_ >= place) return;  // behind what was waited for already
    waited_for_ = place;
    ++waits_;
    may_do_ = std::max(may_do_, place);
    changed_.notify_all();
    changed_.wait(lock, [&] { return done_ >= place || failure_; });
    if (failure_) std::rethrow_exception(failure_);
  }
  void work() {
    on_a_device = true;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return done_ < may_do_ || (ends_ && done_ == asked_); });
      if (done_ == may_do_) return;
      std::function<void()> next = std::move(queue_.front());
      queue_.pop_front();
      const bool failed = bool(failure_);
      lock.unlock();
      std::exception_ptr failure;
      try {
        if (!failed) next();
        next = nullptr;
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure) failure_ = failure;
      ++done_;
      changed_.notify_all();
    }
  }

  std::unique_ptr<Device> arithmetic_;
  Late when_;
  LateKernels kernels_{*this};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::uint64_t asked_ = 0, may_do_ = 0, done_ = 0, waited_for_ = 0;
  bool ends_ = false;
  int waits_ = 0;
  std::exception_ptr failure_;
  std::thread worker_;
};

inline void LateKernels::hand_on(const KernelCall& call) {
  device_.ask(
      [this, kept = std::shared_ptr<KernelCall>(call.kept())] { kept->on(device_.arithmetic().kernels()); });
}

inline void LateKernels::grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b,
                                        const Groups& groups, const MatmulArgs& how) {
  const std::vector<std::int64_t> offsets(groups.offsets.begin(), groups.offsets.end());
  device_.ask([this, out, a, b, offsets, how] {
    device_.arithmetic().kernels().grouped_matmul(out, a, b, {offsets}, how);
  });
}

/// Words of another circle, said when their turn comes in the device's queue. What hosts have to say to each
/// other goes by a circle of its own.
class LateCommunicator final : public Communicator {
 public:
  LateCommunicator(Communicator& inner, LateDevice& device)
      : inner_(inner), device_(device), hosts_(inner.split(0, inner.rank())) {}
  LateCommunicator(std::unique_ptr<Communicator> inner, LateDevice& device)
      : owned_(std::move(inner)), inner_(*owned_), device_(device), hosts_(inner_.split(0, inner_.rank())) {}

  LateCommunicator(const LateCommunicator&) = delete;  // words in the queue know where they are said
  LateCommunicator& operator=(const LateCommunicator&) = delete;
  ~LateCommunicator() override {
    try {
      device_.synchronize();
    } catch (...) {  // whoever waited before was told
    }
  }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const char* carrier() const override { return inner_.carrier(); }
  bool adds_as_trees() const override { return inner_.adds_as_trees(); }
  std::vector<std::string> tell_all(const std::string& mine) override { return hosts_->tell_all(mine); }
  void agree(std::span<double> numbers, Reduce how) override { hosts_->agree(numbers, how); }
  void barrier() override { hosts_->barrier(); }

  Pending all_reduce(const Tensor& x, Reduce how) override {
    return say([this, x, how] { return inner_.all_reduce(x, how); });
  }
  Pending all_gather(const Tensor& full, const Tensor& shard) override {
    return say([this, full, shard] { return inner_.all_gather(full, shard); });
  }
  Pending reduce_scatter(const Tensor& shard, const Tensor& full) override {
    return say([this, shard, full] { return inner_.reduce_scatter(shard, full); });
  }
  Pending all_to_all(const Tensor& out, const Tensor& in, std::span<const std::int64_t> in_rows,
                     std::span<const std::int64_t> out_rows) override {
    return say([this, out, in, going = std::vector(in_rows.begin(), in_rows.end()),
                coming = std::vector(out_rows.begin(), out_rows.end())] {
      return inner_.all_to_all(out, in, going, coming);
    });
  }
  Pending broadcast(const Tensor& x, int root) override {
    return say([this, x, root] { return inner_.broadcast(x, root); });
  }
  Pending send(const Tensor& x, int to, int tag) override {
    return say([this, x, to, tag] { return inner_.send(x, to, tag); });
  }
  Pending recv(const Tensor& x, int from, int tag) override {
    return say([this, x, from, tag] { return inner_.recv(x, from, tag); });
  }
  std::unique_ptr<Communicator> split(int color, int key) override {
    return std::make_unique<LateCommunicator>(hosts_->split(color, key), device_);
  }

 private:
  /// Said in one turn, waited for in another: the host waits in neither.
  Pending say(std::function<Pending()> word) {
    const auto under_way = std::make_shared<Pending>();
    device_.ask([under_way, word = std::move(word)] { *under_way = word(); });
    return Pending([device = &device_, under_way] { device->ask([under_way] { under_way->wait(); }); });
  }

  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
  LateDevice& device_;
  std::unique_ptr<Communicator> hosts_;
};

}  // namespace weft::testing
