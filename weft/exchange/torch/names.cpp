#include "weft/exchange/torch/names.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

namespace weft::exchange::torch {
namespace {

constexpr std::array element_types{
    ElementType{"float32", "FloatStorage", 4, Dtype::f32},
    ElementType{"float16", "HalfStorage", 2, Dtype::f16},
    ElementType{"bfloat16", "BFloat16Storage", 2, Dtype::bf16},
    ElementType{"float64", "DoubleStorage", 8, Dtype::f64},
    ElementType{"int64", "LongStorage", 8, Dtype::i64},
    ElementType{"int32", "IntStorage", 4, Dtype::i32},
    ElementType{"uint8", "ByteStorage", 1, Dtype::u8},
    ElementType{"float8_e4m3fn", "", 1, Dtype::f8e4m3},
    ElementType{"float8_e5m2", "", 1, Dtype::f8e5m2},
    ElementType{"int16", "ShortStorage", 2, {}},
    ElementType{"int8", "CharStorage", 1, {}},
    ElementType{"bool", "BoolStorage", 1, {}},
    ElementType{"uint16", "", 2, {}},
    ElementType{"uint32", "", 4, {}},
    ElementType{"uint64", "", 8, {}},
    ElementType{"float8_e4m3fnuz", "", 1, {}},
    ElementType{"float8_e5m2fnuz", "", 1, {}},
    ElementType{"float8_e8m0fnu", "", 1, {}},
    ElementType{"float4_e2m1fn_x2", "", 1, {}},
    ElementType{"complex64", "ComplexFloatStorage", 8, {}},
    ElementType{"complex128", "ComplexDoubleStorage", 16, {}},
};

constexpr std::array torch_names{
    Known{"torch._utils", "_rebuild_tensor_v2", Use::tensor_v2},
    Known{"torch._utils", "_rebuild_tensor_v3", Use::tensor_v3},
    Known{"torch._utils", "_rebuild_parameter", Use::parameter},
    Known{"torch._tensor", "_rebuild_from_type_v2", Use::tensor_class},
    Known{"torch", "Tensor", Use::word},
    Known{"torch.nn.parameter", "Parameter", Use::word},
    Known{"torch.storage", "UntypedStorage", Use::storage},
    Known{"torch", "Size", Use::size},
    Known{"torch", "device", Use::marked},
    Known{"torch.serialization", "_get_layout", Use::marked},
    Known{"torch.distributed.checkpoint.metadata", "Metadata", Use::fields},
    Known{"torch.distributed.checkpoint.metadata", "TensorStorageMetadata", Use::fields},
    Known{"torch.distributed.checkpoint.metadata", "BytesStorageMetadata", Use::fields},
    Known{"torch.distributed.checkpoint.metadata", "ChunkStorageMetadata", Use::fields},
    Known{"torch.distributed.checkpoint.metadata", "TensorProperties", Use::state},
    Known{"torch.distributed.checkpoint.metadata", "MetadataIndex", Use::fields},
    Known{"torch.distributed.checkpoint.metadata", "StorageMeta", Use::fields},
    Known{"torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING", Use::marked},
    Known{"torch.distributed.checkpoint.filesystem", "_StorageInfo", Use::fields},
    Known{"torch.distributed.checkpoint.filesystem", "_StoragePrefix", Use::fields},
    Known{"torch.distributed.checkpoint.planner", "SavePlan", Use::fields},
    Known{"torch.distributed.checkpoint.planner", "WriteItem", Use::fields},
    Known{"torch.distributed.checkpoint.planner", "WriteItemType", Use::marked},
    Known{"torch.distributed.checkpoint.planner", "TensorWriteData", Use::fields},
    Known{"torch.distributed.checkpoint.planner", "BytesIOWriteData", Use::fields},
};

// Protocol 2 writes the names that modules of Python 2 had.
constexpr std::array python_names{
    Known{"collections", "OrderedDict", Use::ordered_dict},
    Known{"argparse", "Namespace", Use::fields},
    Known{"types", "SimpleNamespace", Use::fields},
    Known{"signal", "Signals", Use::marked},
    Known{"pathlib", "PosixPath", Use::opaque},
    Known{"pathlib._local", "PosixPath", Use::opaque},
    Known{"_io", "BytesIO", Use::opaque},
    Known{"_codecs", "encode", Use::encode},
    Known{"copyreg", "_reconstructor", Use::reconstructor},
    Known{"copy_reg", "_reconstructor", Use::reconstructor},
    Known{"builtins", "object", Use::object_class},
    Known{"__builtin__", "object", Use::object_class},
    Known{"builtins", "bytes", Use::bytes},
    Known{"__builtin__", "bytes", Use::bytes},
    Known{"builtins", "bytearray", Use::bytes},
    Known{"__builtin__", "bytearray", Use::bytes},
    Known{"builtins", "set", Use::set},
    Known{"__builtin__", "set", Use::set},
    Known{"builtins", "frozenset", Use::set},
    Known{"__builtin__", "frozenset", Use::set},
    Known{"numpy", "ndarray", Use::array_class},
    Known{"numpy", "dtype", Use::array_dtype},
    Known{"numpy._core.multiarray", "_reconstruct", Use::array},
    Known{"numpy.core.multiarray", "_reconstruct", Use::array},
    Known{"numpy._core.multiarray", "scalar", Use::array_scalar},
    Known{"numpy.core.multiarray", "scalar", Use::array_scalar},
};

constexpr std::array trainers_names{
    Known{"megatron.core.enums", "ModelType", Use::marked},
    Known{"megatron.core.enums", "Fp8Recipe", Use::marked},
    Known{"megatron.core.enums", "Fp4Recipe", Use::marked},
    Known{"megatron.core.transformer.enums", "ModelType", Use::marked},
    Known{"megatron.core.transformer.enums", "LayerType", Use::marked},
    Known{"megatron.core.transformer.enums", "AttnType", Use::marked},
    Known{"megatron.core.transformer.enums", "AttnMaskType", Use::marked},
    Known{"megatron.core.transformer.enums", "AttnBackend", Use::marked},
    Known{"megatron.core.transformer.enums", "CudaGraphModule", Use::marked},
    Known{"megatron.core.transformer.enums", "CudaGraphScope", Use::marked},
    Known{"megatron.core.transformer.enums", "InferenceCudaGraphScope", Use::marked},
    Known{"megatron.core.rerun_state_machine", "RerunMode", Use::marked},
    Known{"megatron.core.rerun_state_machine", "RerunState", Use::marked},
    Known{"megatron.core.rerun_state_machine", "RerunDiagnostic", Use::marked},
    Known{"megatron.core.rerun_state_machine", "RerunValidationStatus", Use::marked},
    Known{"megatron.core.optimizer.optimizer_config", "OptimizerConfig", Use::opaque},
    Known{"megatron.core.optimizer", "OptimizerConfig", Use::opaque},
    Known{"deepspeed.runtime.fp16.loss_scaler", "LossScaler", Use::fields},
    Known{"deepspeed.runtime.fp16.loss_scaler", "DynamicLossScaler", Use::fields},
    Known{"deepspeed.runtime.zero.config", "ZeroStageEnum", Use::marked},
    Known{"deepspeed.utils.tensor_fragment", "fragment_address", Use::fields},
};

std::vector<Known> sorted_names() {
  std::vector<Known> all(torch_names.begin(), torch_names.end());
  all.insert(all.end(), python_names.begin(), python_names.end());
  all.insert(all.end(), trainers_names.begin(), trainers_names.end());
  for (const ElementType& type : element_types) {
    all.push_back({"torch", type.dtype, Use::word});
    if (!type.storage.empty()) all.push_back({"torch", type.storage, Use::storage});
  }
  std::sort(all.begin(), all.end(), [](const Known& a, const Known& b) {
    return std::tie(a.module, a.name) < std::tie(b.module, b.name);
  });
  return all;
}

const ElementType* first_where(auto&& holds) {
  const auto* found = std::find_if(element_types.begin(), element_types.end(), holds);
  return found == element_types.end() ? nullptr : &*found;
}

}  // namespace

const Known* known(std::string_view module, std::string_view name) {
  static const std::vector<Known> names = sorted_names();
  const auto wanted = std::tie(module, name);
  const auto found = std::lower_bound(
      names.begin(), names.end(), wanted,
      [](const Known& row, const auto& other) { return std::tie(row.module, row.name) < other; });
  return found != names.end() && std::tie(found->module, found->name) == wanted ? &*found : nullptr;
}

const ElementType* type_of_dtype(std::string_view dtype) {
  return first_where([&](const ElementType& type) { return type.dtype == dtype; });
}

const ElementType* type_of_storage(std::string_view storage) {
  // Bytes without a type of their own are counted as bytes.
  if (storage == "UntypedStorage") storage = "ByteStorage";
  return first_where([&](const ElementType& type) { return type.storage == storage && !storage.empty(); });
}

}  // namespace weft::exchange::torch
