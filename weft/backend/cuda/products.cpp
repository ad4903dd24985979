#include "weft/backend/cuda/products.h"

#include <gpu_notes.h>

#include <algorithm>
#include <bit>

#include "weft/backend/cuda/place.h"
#include "weft/base/error.h"

namespace weft::cuda {
namespace {

constexpr std::size_t most_plans = 4096;

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail(Kind::device, "cuda: cuBLASLt refuses ", what, ": status ", int(status));
}

bool is_f8(int type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

cudaDataType type_of(Dtype dtype) {
  if (dtype == Dtype::f8e4m3) return CUDA_R_8F_E4M3;
  if (dtype == Dtype::f8e5m2) return CUDA_R_8F_E5M2;
  return dtype == Dtype::f32 ? CUDA_R_32F : dtype == Dtype::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

/// Of a matrix's first element and of every row, in bytes: what the library may count on.
int alignment_of(const Tensor& t) {
  if (!t) return 0;
  auto bits = std::bit_cast<std::uintptr_t>(place_of(t));
  for (int d = 0; d + 1 < t.rank(); ++d)
    if (t.dim(d) > 1) bits |= std::uintptr_t(t.stride(d) * size_of(t.dtype()));
  return int(bits == 0 ? 256 : std::min<std::uintptr_t>(256, bits & (~bits + 1)));
}

// Numbers of the library's, since headers before CUDA 12.9 have no names for them all.
constexpr int scale_mode_of_first = 31, scale_mode_of_second = 32;
constexpr std::size_t first_with_blocks = 120900;

std::int32_t mode_of(F8Blocks blocks) {
  switch (blocks) {
    case F8Blocks::whole:
      return 0;
    case F8Blocks::lines_of_32:
      return 2;
    case F8Blocks::lines_of_128:
      return 4;
    case F8Blocks::squares_of_128:
      return 5;
  }
  fail(Kind::internal, "unknown blocks");
}

// The library's second operand is our first.
int epilogue_of(const Products::Call& call) {
  if (call.sums) return CUBLASLT_EPILOGUE_BGRADB;
  if (!call.gelu.before) return call.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  if (call.gelu.back) return CUBLASLT_EPILOGUE_DGELU;
  return call.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
}

}  // namespace

Products::Products() : library_(lt_library()) { check(library_.create(&handle_), "to begin"); }
Products::~Products() {
  plans_.clear();
  library_.destroy(handle_);
}

std::int64_t Products::workspace_bytes() { return gpu::product_workspace; }

Products::Matrix Products::matrix_of(const Tensor& t) {
  const std::int64_t rows = t.dim(-2), columns = t.dim(-1);
  // A single row has no distance to a next one.
  const std::int64_t ld = rows == 1 ? columns : t.stride(-2);
  return {rows, columns, ld, t.rank() == 3 ? t.stride(0) : 0, int(type_of(t.dtype())), alignment_of(t)};
}

Products::Handle<cublasLtMatrixLayoutOpaque_t> Products::layout(const Matrix& matrix,
                                                                std::int64_t batches) const {
  cublasLtMatrixLayout_t out = nullptr;
  check(library_.new_layout(&out, cudaDataType(matrix.type), std::uint64_t(matrix.columns),
                            std::uint64_t(matrix.rows), matrix.ld),
        "a matrix");
  Handle<cublasLtMatrixLayoutOpaque_t> handle(out, library_.drop_layout);
  const auto count = std::int32_t(batches);
  check(library_.set_layout(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "a batch");
  check(library_.set_layout(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.batch_stride,
                            sizeof matrix.batch_stride),
        "a batch's stride");
  return handle;
}

Products::Plan Products::made(const Key& key, const Call& call) const {
  cublasLtMatmulDesc_t form = nullptr;
  check(library_.new_form(&form, CUBLAS_COMPUTE_32F, CUDA_R_32F), "sums in f32");
  Plan plan{{form, library_.drop_form},
            layout(key.out, key.batches),
            layout(key.a, key.batches),
            layout(key.b, key.batches),
            {},
            0};
  const auto set = [&](cublasLtMatmulDescAttributes_t which, const auto& value) {
    check(library_.set_form(form, which, &value, sizeof value), "a form");
  };
  // The library's first operand is our second.
  set(CUBLASLT_MATMUL_DESC_TRANSA, key.turned_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, key.turned_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (key.epilogue != CUBLASLT_EPILOGUE_DEFAULT) set(CUBLASLT_MATMUL_DESC_EPILOGUE, key.epilogue);
  if (call.gelu.before) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, key.before_ld);
  if (key.a_blocks != F8Blocks::whole) scale_by_blocks(plan, key);
  // Which ways there are is asked with vectors in their places: each call brings its own.
  point(planned(plan, call));
  plan.known = choose(plan, key);
  return plan;
}

void Products::scale_by_blocks(const Plan& plan, const Key& key) const {
  if (const std::size_t version = library_.version(); version < first_with_blocks)
    fail(Kind::device, "cuda: cuBLASLt ", version / 10000, ".", version / 100 % 100,
         " knows no scales of blocks, expected 12.9 or newer; take another {model.fp8.recipe}");
  const auto set = [&](int which, F8Blocks blocks) {
    const std::int32_t mode = mode_of(blocks);
    check(library_.set_form(plan.form.get(), cublasLtMatmulDescAttributes_t(which), &mode, sizeof mode),
          "scales of blocks");
  };
  set(scale_mode_of_first, key.b_blocks);
  set(scale_mode_of_second, key.a_blocks);
}

bool Products::choose(Plan& plan, const Key& key) const {
  cublasLtMatmulPreference_t made = nullptr;
  check(library_.new_preference(&made), "a preference");
  const Handle<cublasLtMatmulPreferenceOpaque_t> preference(made, library_.drop_preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    check(library_.set_preference(made, which, &value, sizeof value), "a preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(workspace_bytes()));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t(key.b.alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(key.a.alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t(key.out.alignment));
  // There is no word for the alignment of a bias, of sums, or of what gelu reads: they go with the result's.
  int d = key.out.alignment;
  for (const int also : {key.vector_alignment, key.before_alignment})
    if (also > 0) d = std::min(d, also);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t(d));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status = library_.find(handle_, plan.form.get(), plan.b.get(), plan.a.get(),
                                              plan.out.get(), plan.out.get(), made, 1, &found, &count);
  const bool found_one = status == CUBLAS_STATUS_SUCCESS && count > 0;
  if (!found_one && (key.before_alignment > 0 || key.epilogue == CUBLASLT_EPILOGUE_BGRADB)) return false;
  if (!found_one)
    fail(Kind::device, "cuda: cuBLASLt knows no way to multiply ", key.out.rows, " x ", key.out.columns,
         " with strides ", key.a.ld, ", ", key.b.ld, " and ", key.out.ld,
         key.a_blocks != F8Blocks::whole ? " and scales of blocks"
         : is_f8(key.a.type) ? "; products of eight bits want a GPU of compute capability 8.9 or more"
                             : "");
  plan.algorithm = found.algo;
  plan.workspace = found.workspaceSize;
  return true;
}

Products::Planned Products::planned(const Plan& plan, const Call& call) const {
  return {.by = this,
          .plan = &plan,
          .out = place_of(call.out),
          .a = place_of(call.a),
          .b = place_of(call.b),
          .vector = call.bias   ? place_of(call.bias)
                    : call.sums ? place_of(call.sums)
                                : nullptr,
          .before = call.gelu.before ? place_of(call.gelu.before) : nullptr,
          .workspace = call.workspace,
          .a_inverse = call.a_inverse,
          .b_inverse = call.b_inverse,
          .beta = call.accumulate ? 1.0 : 0.0};
}

void Products::point(const Planned& it) const {
  const auto set = [&](cublasLtMatmulDescAttributes_t which, const void* at) {
    if (at) check(library_.set_form(it.plan->form.get(), which, &at, sizeof at), "a place");
  };
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, it.vector);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, it.before);
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, it.b_inverse);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, it.a_inverse);
}

void Products::run(const Planned& it, cudaStream_t stream) const {
  point(it);
  const Plan& how = *it.plan;
  const float alpha = 1, beta = float(it.beta);
  check(library_.multiply(handle_, how.form.get(), &alpha, it.b, how.b.get(), it.a, how.a.get(), &beta,
                          it.out, how.out.get(), it.out, how.out.get(), &how.algorithm, it.workspace,
                          how.workspace, stream),
        "a product");
}

Products::Plan& Products::plan(const Key& key, const Call& call) {
  // Experts bring new shapes with every step.
  if (plans_.size() >= most_plans) {
    call.queue->forget_graphs();
    plans_.clear();
  }
  const auto found = plans_.find(key);
  return found != plans_.end() ? found->second : plans_.emplace(key, made(key, call)).first->second;
}

Products::Key Products::key_of(const Call& call) {
  const Tensor& before = call.gelu.before;
  return {.out = matrix_of(call.out),
          .a = matrix_of(call.a),
          .b = matrix_of(call.b),
          .batches = call.out.rank() == 3 ? call.out.dim(0) : 1,
          .turned_a = call.read_a == Read::transposed,
          .turned_b = call.read_b == Read::transposed,
          .vector_alignment = alignment_of(call.bias ? call.bias : call.sums),
          .epilogue = epilogue_of(call),
          .before_ld = before ? matrix_of(before).ld : 0,
          .before_alignment = alignment_of(before),
          .a_blocks = call.a_blocks,
          .b_blocks = call.b_blocks};
}

bool Products::multiply(const Call& call) {
  const Plan& how = plan(key_of(call), call);
  if (how.known) call.queue->call(&how, planned(how, call));
  return how.known;
}

}  // namespace weft::cuda
