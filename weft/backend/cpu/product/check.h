// Tries whether an engine's bits depend on how a product is cut: what exact mode must know of this processor.
#pragma once

#include <string>

#include "weft/backend/cpu/product/engine.h"

namespace weft::product {

/// Products of several k, both ways of reading the operands, with and without packing, accumulation and bias:
/// computed whole by `threads` threads, and again in rows and columns down to one, by one thread.
/// "" where every bit is the same, else what made a difference: "changes bits when rows are cut (k 2048, …)".
/// Takes about 30 ms.
std::string cutting_changes(Engine& engine, fast::Type type, int threads);

}  // namespace weft::product
