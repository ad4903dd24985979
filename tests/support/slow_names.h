// A name server that does not answer before it is let.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "weft/base/hosts.h"

namespace weft::support {

/// Those who ask may outlive the test's body, so what they need is theirs.
class SlowNames {
 public:
  explicit SlowNames(std::string leads_to = "127.0.0.1") : leads_to_(std::move(leads_to)) {}
  ~SlowNames() { answer(); }
  SlowNames(const SlowNames&) = delete;
  SlowNames& operator=(const SlowNames&) = delete;
  hosts::NameService service() const {
    return [may = may_, asked = asked_, to = leads_to_](const std::string&) {
      ++*asked;
      may.wait();
      return hosts::numeric(to);
    };
  }
  void answer() {
    if (!std::exchange(answered_, true)) let_.set_value();
  }
  int asked() const { return *asked_; }

 private:
  std::string leads_to_;
  std::promise<void> let_;
  std::shared_future<void> may_ = let_.get_future().share();
  std::shared_ptr<std::atomic<int>> asked_ = std::make_shared<std::atomic<int>>(0);
  bool answered_ = false;
};

}  // namespace weft::support
