// Matrix products by cuBLASLt: how a product of some shape is best done is asked once and remembered.
//
// The library's matrices lie by columns, ours by rows: out = a b there is out^T = b^T a^T, the same memory.
#pragma once

#include <array>
#include <compare>
#include <functional>
#include <map>
#include <memory>

#include "weft/backend/cuda/lt_library.h"
#include "weft/backend/cuda/queue.h"
#include "weft/backend/cuda/through_gelu.h"
#include "weft/tensor/args.h"

namespace weft::cuda {

class Products {
 public:
  Products();
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  struct Call {
    Tensor out, a, b;  // rank 2 or 3, as Kernels::matmul has them; none of them empty
    Read read_a = Read::as_is, read_b = Read::as_is;
    bool accumulate = false;
    Tensor bias = {};  // [n] of out's type, or none
    void* workspace = nullptr;
    Queue* queue = nullptr;
    const void *a_inverse = nullptr, *b_inverse = nullptr;  // of operands of eight bits
    ThroughGelu gelu = {};
    Tensor sums = {};  // f32 [m]: of a's rows, as read, where it stands alone; or none
    F8Blocks a_blocks = F8Blocks::whole, b_blocks = F8Blocks::whole;  // of what inverses are
  };
  /// False where the library knows no way with gelu or sums; where it knows none without, this fails.
  bool multiply(const Call& call);
  /// Bytes that Call::workspace must have.
  static std::int64_t workspace_bytes();

 private:
  struct Matrix {
    std::int64_t rows, columns, ld, batch_stride;
    int type, alignment;
    auto operator<=>(const Matrix&) const = default;
  };
  struct Key {
    Matrix out, a, b;
    std::int64_t batches;
    bool turned_a, turned_b;
    int vector_alignment;  // of a bias or sums; 0: none
    int epilogue;
    std::int64_t before_ld;
    int before_alignment;  // 0: none
    F8Blocks a_blocks, b_blocks;
    auto operator<=>(const Key&) const = default;
  };
  template <class T>
  using Handle = std::unique_ptr<T, std::function<void(T*)>>;
  struct Plan {
    Handle<cublasLtMatmulDescOpaque_t> form;
    Handle<cublasLtMatrixLayoutOpaque_t> out, a, b;
    cublasLtMatmulAlgo_t algorithm;
    std::size_t workspace;
    bool known = true;
  };

  /// A call that knows its plan, as a value that a list of orders can keep.
  struct Planned {
    const Products* by;
    const Plan* plan;
    void *out, *a, *b, *vector, *before, *workspace;
    const void *a_inverse, *b_inverse;
    double beta;  // what is there counts so much; as wide as places, so that nothing lies between members
    void operator()(cudaStream_t stream) const { by->run(*this, stream); }
  };

  static Matrix matrix_of(const Tensor& tensor);
  static Key key_of(const Call& call);
  Plan& plan(const Key& key, const Call& call);
  Plan made(const Key& key, const Call& call) const;
  Planned planned(const Plan& plan, const Call& call) const;
  void run(const Planned& it, cudaStream_t stream) const;
  /// Where the vectors of a call lie.
  void point(const Planned& it) const;
  bool choose(Plan& plan, const Key& key) const;
  /// Tells the library what inverses are of.
  void scale_by_blocks(const Plan& plan, const Key& key) const;
  Handle<cublasLtMatrixLayoutOpaque_t> layout(const Matrix& matrix, std::int64_t batches) const;

  LtLibrary library_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace weft::cuda
