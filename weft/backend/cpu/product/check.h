// Tries whether an engine's bits depend on how a product is cut: what exact mode must know of this processor.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "weft/backend/cpu/product/engine.h"

namespace weft::product {

/// Products of several k, both ways of reading the operands, with and without packing, accumulation and bias:
/// computed whole by `threads` threads, and again in rows and columns down to one, by one thread.
/// "" where every bit is the same, else what made a difference: "changes bits when rows are cut (k 2048, …)".
/// Takes about 30 ms.
std::string cutting_changes(Engine& engine, fast::Type type, int threads);

}  // namespace weft::product

namespace weft {

/// What cutting_changes said of each engine, by its name. The devices of a process share one, so that every
/// engine is tried once; who asks meanwhile waits for the answer.
class ProductTrials {
 public:
  std::string cutting_changes(product::Engine& engine, fast::Type type, int threads);

 private:
  std::mutex mutex_;
  std::map<std::tuple<std::string, fast::Type, int>, std::string> said_;
};

}  // namespace weft
