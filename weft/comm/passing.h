// Circles that speak through another one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft {

/// What a circle that is another one's mouth has of it. Words that carry tensors are said by whoever derives
/// from this.
class PassingCommunicator : public Communicator {
 public:
  PassingCommunicator(const PassingCommunicator&) = delete;
  PassingCommunicator& operator=(const PassingCommunicator&) = delete;
  ~PassingCommunicator() override = default;

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Pulse* pulse() const override { return inner_.pulse(); }
  const char* carrier() const override { return inner_.carrier(); }
  void check() const override { inner_.check(); }
  bool adds_as_trees() const override { return inner_.adds_as_trees(); }
  bool keeps_letters() const override { return inner_.keeps_letters(); }
  std::vector<std::string> tell_all(const std::string& mine) override { return inner_.tell_all(mine); }
  void agree(std::span<double> numbers, Reduce how) override { inner_.agree(numbers, how); }
  void barrier() override { inner_.barrier(); }

 protected:
  /// `inner` outlives it.
  explicit PassingCommunicator(Communicator& inner) : inner_(inner) {}
  /// Of a circle that lives as long as this.
  explicit PassingCommunicator(std::unique_ptr<Communicator> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}
  Communicator& inner() const { return inner_; }

 private:
  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
};

/// One that keeps an account of what is said, which is its own until it is given one. Circles that are split
/// off it inherit that. An account outlives it.
template <class Self, class Account>
class ChargedCommunicator : public PassingCommunicator {
 public:
  explicit ChargedCommunicator(Communicator& inner) : PassingCommunicator(inner) {}
  ChargedCommunicator(std::unique_ptr<Communicator> inner, Account& account)
      : PassingCommunicator(std::move(inner)), account_(&account) {}

  /// To whom `circle`, which was split off this one, adds from now on; nothing happens where it was not.
  void charge(const Communicator& circle, Account& account) {
    for (Self* child : children_)
      if (child == &circle) child->charge_here(account);
  }
  void charge_here(Account& account) { account_ = &account; }
  std::unique_ptr<Communicator> split(int color, int key) override {
    auto child = std::make_unique<Self>(inner().split(color, key), *account_);
    children_.push_back(child.get());
    return child;
  }

 protected:
  Account* account() const { return account_; }

 private:
  Account own_{};
  Account* account_ = &own_;
  std::vector<Self*> children_;
};

}  // namespace weft
