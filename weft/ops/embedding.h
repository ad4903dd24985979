// Rows of a table by id, and the gradient's way back; the table may hold a part of the vocabulary.
#pragma once

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// table [v, h], ids i32 [..] -> [.., h] of the table's type. Rows [first, first + v) are held here; other
/// ids give zeros.
Tensor gather(const Tensor& table, const Tensor& ids, std::int64_t first = 0);
/// dtable [v, h] (f32) [id - first] += dout [.., h], in the order of ids; other ids are skipped.
void scatter_add_into(const Tensor& dtable, const Tensor& dout, const Tensor& ids, std::int64_t first = 0);

}  // namespace weft::ops
