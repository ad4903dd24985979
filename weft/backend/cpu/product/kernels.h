// Products of tensors by our own loops: shapes, batches and groups become problems, workspace comes from the
// pool.
#pragma once

#include "weft/backend/cpu/product/run.h"
#include "weft/tensor/kernels.h"

namespace weft::product {

fast::Type type_of(Dtype dtype);

/// The i-th product of a batch, or the only one.
Problem problem(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how,
                std::int64_t i = 0);

/// Workspace of matmul and grouped_matmul: pure, so that a device without numbers asks for the same.
std::int64_t matmul_bytes(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how,
                          int threads);
std::int64_t grouped_bytes(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how,
                           int threads);

void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how, const Loops& loops);
void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, Groups groups, const MatmulArgs& how,
                    const Loops& loops);
void pack(const Tensor& packed, const Tensor& w, Read read, const Loops& loops);

}  // namespace weft::product
