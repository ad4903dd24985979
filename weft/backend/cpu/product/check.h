// Tries whether an engine's bits depend on how a product is cut: what exact mode must know of this processor.
#pragma once

#include <compare>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "weft/backend/cpu/product/engine.h"

namespace weft::product {

/// What exact mode may choose an engine by: everything of a product but m and n. Where a product is a sum of
/// slabs, k is one slab's.
struct CutForm {
  std::int64_t k = 0;
  fast::Type type{}, out{};
  bool a_turned = false, b_turned = false, accumulate = false, bias = false;
  auto operator<=>(const CutForm&) const = default;
};
CutForm cut_form(const Problem& problem);

/// Small products of one form: computed whole by `threads` threads, and again in rows and columns down to
/// one, by one thread. "" where every bit is the same, else what made a difference: "changes bits when rows
/// are cut (k 2048, …)". Takes a few milliseconds where k is a few thousand. Results of few bits hide most of
/// what changes, so the form is tried with those of f32, too.
std::string cutting_changes(Engine& engine, const CutForm& form, int threads);
/// The same of several k, both ways of reading the operands, with and without packing, accumulation and bias,
/// with results of f32.
/// Takes about 30 ms.
std::string cutting_changes(Engine& engine, fast::Type type, int threads);

}  // namespace weft::product

namespace weft {

/// What cutting_changes said of each engine, by its name. The devices of a process share one, so that every
/// engine, and every form that a run meets, is tried once; who asks meanwhile waits for the answer.
class ProductTrials {
 public:
  std::string cutting_changes(product::Engine& engine, fast::Type type, int threads);
  bool holds(product::Engine& engine, const product::CutForm& form, int threads);

 private:
  std::mutex mutex_;
  std::map<std::tuple<std::string, product::CutForm, int>, bool> holds_;
  std::map<std::tuple<std::string, fast::Type, int>, std::string> said_;
};

}  // namespace weft
