// A fake of cuBLASLt: plain loops that take descriptors at their word and touch exactly the elements these
// name. Matrices are by columns, as the library's default is.
#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tests/support/gpu/emulated.h"
#include "tests/support/gpu/product_form.h"
#include "weft/base/half.h"

namespace {

using emulated::Touch;

using Desc = emulated::ProductForm;
struct Layout {
  cudaDataType type;
  std::int64_t rows, columns, ld, batch_stride;
  std::int32_t batches;
};
struct Preference {
  std::uint64_t workspace;
  std::uint32_t alignment[4];  // of a, b, c, d, in bytes
};
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulAlgo_t));

template <class T, class Opaque>
T& as(Opaque* opaque) {
  return *reinterpret_cast<T*>(opaque);
}

bool is_f8(int type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

std::size_t size_of(int type) { return type == CUDA_R_32F ? 4 : is_f8(type) ? 1 : 2; }

float load(const void* at, std::int64_t i, int type) {
  if (type == CUDA_R_32F) return static_cast<const float*>(at)[i];
  if (type == CUDA_R_16F) return static_cast<const weft::f16*>(at)[i];
  if (type == CUDA_R_8F_E4M3) return static_cast<const weft::f8e4m3*>(at)[i];
  if (type == CUDA_R_8F_E5M2) return static_cast<const weft::f8e5m2*>(at)[i];
  return static_cast<const weft::bf16*>(at)[i];
}

void store(void* at, std::int64_t i, int type, float x) {
  if (type == CUDA_R_32F)
    static_cast<float*>(at)[i] = x;
  else if (type == CUDA_R_16F)
    static_cast<weft::f16*>(at)[i] = weft::f16(x);
  else
    static_cast<weft::bf16*>(at)[i] = weft::bf16(x);
}

/// All of one matrix of a batch, column by column.
bool touch(const void* at, const Layout& is, Touch how) {
  const auto* bytes = static_cast<const char*>(at);
  for (std::int64_t batch = 0; batch < is.batches; ++batch)
    for (std::int64_t j = 0; j < is.columns; ++j) {
      const auto first = std::size_t(batch * is.batch_stride + j * is.ld) * size_of(is.type);
      if (!emulated::touch(bytes + first, std::size_t(is.rows) * size_of(is.type), how)) return false;
    }
  return true;
}

struct Curve {
  double value, slope;
};
/// The tanh form, which is the library's.
Curve gelu(double x) {
  constexpr double root = 0.7978845608028654, cube = 0.044715;  // the root of two over pi
  const double t = std::tanh(root * (x + cube * x * x * x));
  return {0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * cube * x * x)};
}

/// A product as it was asked for.
struct Product {
  Desc how;
  Layout la, lb, lc, ld;
  const void *a, *b, *c;
  void* d;
  float alpha, beta;
  void* workspace;
  std::size_t workspace_bytes;

  std::int64_t depth() const { return how.a == CUBLAS_OP_T ? la.rows : la.columns; }
  int bias_type() const { return how.bias_type < 0 ? int(ld.type) : how.bias_type; }
  /// What gelu reads beside the result, or read.
  Layout before_is() const { return {ld.type, ld.rows, ld.columns, how.before_ld, 0, 1}; }

  bool fits() const {
    return (how.a == CUBLAS_OP_T ? la.columns : la.rows) == ld.rows &&
           (how.b == CUBLAS_OP_T ? lb.rows : lb.columns) == ld.columns &&
           (how.b == CUBLAS_OP_T ? lb.columns : lb.rows) == depth() && la.batches == ld.batches &&
           lb.batches == ld.batches && lc.rows == ld.rows && lc.columns == ld.columns && lc.type == ld.type &&
           lc.batches == ld.batches;
  }
  /// The combinations of types that the library's table has.
  bool supported() const {
    if (is_f8(la.type) || is_f8(lb.type)) return supported_f8();
    if (la.type != lb.type || how.a_scale.at || how.b_scale.at) return false;
    if (ld.type != la.type && ld.type != CUDA_R_32F) return false;
    if (!gelu_fits()) return false;
    if (how.sums_up() && (ld.batches != 1 || bias_type() != int(ld.type))) return false;
    return !how.biased() || bias_type() == int(ld.type);
  }
  /// Of eight bits, on the first GPUs that have them: both operands lie along what is summed, sizes and
  /// places are multiples of 16 bytes, two of E5M2 are none, and a bias goes with a result of half precision
  /// or is bf16.
  bool supported_f8() const {
    if (!is_f8(la.type) || !is_f8(lb.type) || is_f8(ld.type)) return false;
    if (la.type == CUDA_R_8F_E5M2 && lb.type == CUDA_R_8F_E5M2) return false;
    if (how.a != CUBLAS_OP_T || how.b != CUBLAS_OP_N) return false;
    for (const Layout& each : {la, lb, ld})
      for (const std::int64_t size : {each.rows, each.columns, each.ld})
        if (size * std::int64_t(size_of(each.type)) % 16 != 0) return false;
    for (const void* each : {a, b, static_cast<const void*>(d)})
      if (reinterpret_cast<std::uintptr_t>(each) % 16 != 0) return false;
    for (const auto& each : {how.a_scale, how.b_scale})
      if (reinterpret_cast<std::uintptr_t>(each.at) % 16 != 0)
        return false;  // as seen on a GPU: no manual says so
    if (!emulated::go_together(how.a_scale, how.b_scale, emulated::capability())) return false;
    if (how.a_scale.mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0 && depth() % 32 != 0) return false;
    return !how.biased() || bias_type() == (ld.type == CUDA_R_32F ? int(CUDA_R_16BF) : int(ld.type));
  }
  /// One matrix, and nothing that is added.
  bool gelu_fits() const {
    if (!how.goes_through_gelu() && !how.goes_back()) return true;
    return how.before_fits() && how.before_ld >= ld.rows && ld.batches == 1 && beta == 0;
  }
  /// What the sums are multiplied by.
  float scale() const { return alpha * whole(how.a_scale) * whole(how.b_scale); }
  static float whole(const emulated::OperandScale& is) {
    return is.at && !is.of_blocks() ? *static_cast<const float*>(is.at) : 1;
  }
  bool touched() const {
    for (const auto& [each, lines] : {std::pair{how.a_scale, ld.rows}, {how.b_scale, ld.columns}})
      if (each.at && !emulated::touch(each.at, each.bytes(depth(), lines), Touch::read)) return false;
    bool alive =
        touch(a, la, Touch::read) && touch(b, lb, Touch::read) && (beta == 0 || touch(c, lc, Touch::read));
    if (how.biased())
      alive = alive && emulated::touch(how.bias, std::size_t(ld.rows) * size_of(bias_type()), Touch::read);
    if (how.sums_up())
      alive =
          alive && emulated::touch(how.bias, std::size_t(ld.columns) * size_of(bias_type()), Touch::write);
    if (how.goes_through_gelu()) alive = alive && touch(how.before, before_is(), Touch::write);
    if (how.goes_back()) alive = alive && touch(how.before, before_is(), Touch::read);
    const std::uint64_t moved = emulated::meter().moved;
    if (workspace_bytes > 0) alive = alive && emulated::touch(workspace, workspace_bytes, Touch::write);
    emulated::meter().moved = moved;  // what the library moves there nobody knows
    return alive && touch(d, ld, Touch::write);
  }
  float left(std::int64_t z, std::int64_t i, std::int64_t k) const {
    return how.a_scale.of(k, i, depth(), ld.rows) *
           load(a, z * la.batch_stride + (how.a == CUBLAS_OP_T ? i * la.ld + k : k * la.ld + i), la.type);
  }
  float right(std::int64_t z, std::int64_t k, std::int64_t j) const {
    return how.b_scale.of(k, j, depth(), ld.columns) *
           load(b, z * lb.batch_stride + (how.b == CUBLAS_OP_T ? k * lb.ld + j : j * lb.ld + k), lb.type);
  }
  /// sums[i] = sum over k of left[k][i] times right[k][j], in an order that follows from the shape, as that
  /// of the real library's kernels does: in ascending k or in descending.
  void column(std::int64_t z, std::int64_t j, const std::vector<float>& lefts,
              std::vector<float>& sums) const {
    std::fill(sums.begin(), sums.end(), 0.0F);
    const bool ascends = (ld.rows + ld.columns) % 3 != 0;
    for (std::int64_t step = 0; step < depth(); ++step) {
      const std::int64_t k = ascends ? step : depth() - 1 - step;
      const float factor = right(z, k, j);
      const float* with = lefts.data() + k * ld.rows;
      for (std::int64_t i = 0; i < ld.rows; ++i) sums[std::size_t(i)] += with[i] * factor;
    }
  }
  void element(std::int64_t z, std::int64_t i, std::int64_t j, float sum) const {
    float out = scale() * sum;
    if (beta != 0) out += beta * load(c, z * lc.batch_stride + j * lc.ld + i, lc.type);
    if (how.biased()) out += load(how.bias, i, bias_type());
    const std::int64_t beside = j * how.before_ld + i;
    if (how.goes_through_gelu()) {
      store(how.before, beside, ld.type, out);
      out = float(gelu(out).value);
    }
    if (how.goes_back()) out *= float(gelu(load(how.before, beside, ld.type)).slope);
    store(d, z * ld.batch_stride + j * ld.ld + i, ld.type, out);
  }
  /// Of b, as it is read, along what is summed: not added to what is there.
  void sum_up(std::int64_t j) const {
    float sum = 0;
    for (std::int64_t k = 0; k < depth(); ++k) sum += right(0, k, j);
    store(const_cast<void*>(how.bias), j, bias_type(), sum);
  }
  void carry_out() const {
    if (emulated::idle() || !touched()) return;
    std::vector<float> lefts(std::size_t(depth() * ld.rows)), sums(std::size_t(ld.rows));
    for (std::int64_t z = 0; z < ld.batches; ++z) {
      for (std::int64_t k = 0; k < depth(); ++k)
        for (std::int64_t i = 0; i < ld.rows; ++i) lefts[std::size_t(k * ld.rows + i)] = left(z, i, k);
      for (std::int64_t j = 0; j < ld.columns; ++j) {
        column(z, j, lefts, sums);
        for (std::int64_t i = 0; i < ld.rows; ++i) element(z, i, j, sums[std::size_t(i)]);
        if (how.sums_up()) sum_up(j);
      }
    }
  }
};

void look_at_alignment(const Product& product, const Preference& promised) {
  const void* operands[] = {product.a, product.b, product.c, product.d};
  for (std::size_t i = 0; i < 4; ++i)
    if (reinterpret_cast<std::uintptr_t>(operands[i]) % promised.alignment[i] != 0)
      emulated::report("cublasLtMatmul: operand " + std::to_string(i) +
                       " is not aligned as the preference promised");
}

}  // namespace

extern "C" {

std::size_t cublasLtGetVersion() { return emulated::version_of_products(); }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *desc = new std::remove_pointer_t<cublasLtMatmulDesc_t>;
  as<Desc>(*desc) = {};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which,
                                              const void* value, std::size_t bytes) {
  Desc& is = as<Desc>(desc);
  const bool is_place =
      which == CUBLASLT_MATMUL_DESC_BIAS_POINTER || which == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER ||
      which == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD || which == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER ||
      which == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER;
  if (bytes != (is_place ? 8U : 4U)) return CUBLAS_STATUS_INVALID_VALUE;
  void* const place = is.place_of(which);
  if (!place) return CUBLAS_STATUS_NOT_SUPPORTED;
  std::memcpy(place, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t ld) {
  if (ld < std::int64_t(rows) || rows == 0 || columns == 0) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new std::remove_pointer_t<cublasLtMatrixLayout_t>;
  as<Layout>(*layout) = {type, std::int64_t(rows), std::int64_t(columns), ld, 0, 1};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t which, const void* value,
                                                std::size_t bytes) {
  Layout& is = as<Layout>(layout);
  if (bytes != (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? 4U : 8U)) return CUBLAS_STATUS_INVALID_VALUE;
  if (which == CUBLASLT_MATRIX_LAYOUT_LD)
    std::memcpy(&is.ld, value, 8);
  else if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    std::memcpy(&is.batches, value, 4);
  else if (which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    std::memcpy(&is.batch_stride, value, 8);
  else
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new std::remove_pointer_t<cublasLtMatmulPreference_t>;
  as<Preference>(*preference) = {0, {256, 256, 256, 256}};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void* value, std::size_t) {
  Preference& is = as<Preference>(preference);
  if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    std::memcpy(&is.workspace, value, 8);
  else
    std::memcpy(&is.alignment[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, 4);
  return CUBLAS_STATUS_SUCCESS;
}

// The algorithm that is found remembers what was promised of alignments, and wants all of the workspace.
// A bias that is to be added must lie somewhere, and so must what gelu reads, at a place that it can take:
// the manual does not say that the library asks for it here, and nobody is to find out on a GPU.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  *found = 0;
  const Desc& how = as<Desc>(desc);
  if ((how.biased() || how.sums_up()) && !how.bias) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!how.before_fits()) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  results[0].workspaceSize = as<Preference>(preference).workspace;
  std::memcpy(&results[0].algo, &as<Preference>(preference), sizeof(Preference));
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

/// d = alpha a b + beta c, then the epilogue; a and b as their transposes say.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_is, const void* b, cublasLtMatrixLayout_t b_is,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_is, void* d,
                              cublasLtMatrixLayout_t d_is, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  const Product product{as<Desc>(desc),
                        as<Layout>(a_is),
                        as<Layout>(b_is),
                        as<Layout>(c_is),
                        as<Layout>(d_is),
                        a,
                        b,
                        c,
                        d,
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        workspace,
                        workspace_bytes};
  if (emulated::launch_error(stream, {{}, {32}}) != 0) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!product.fits()) return CUBLAS_STATUS_INVALID_VALUE;
  if (!product.supported()) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const Layout& each : {product.la, product.lb, product.lc, product.ld})
    if (each.ld < each.rows) return CUBLAS_STATUS_INVALID_VALUE;
  if (algo) {
    Preference promised;
    std::memcpy(&promised, algo, sizeof promised);
    look_at_alignment(product, promised);
    if (workspace_bytes < promised.workspace) return CUBLAS_STATUS_INVALID_VALUE;
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  }
  emulated::count_asked(stream);
  emulated::enqueue(stream, [product] { product.carry_out(); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
