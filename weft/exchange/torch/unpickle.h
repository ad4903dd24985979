// Pickles as data: a list of names says what an object may be of, and anything else is refused by its name.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "weft/exchange/torch/value.h"

namespace weft::exchange::torch {

/// A pickle that stands alone and has no tensors, such as .metadata of a torch_dist checkpoint. What is read:
/// - dicts and OrderedDicts: a Map of type "";
/// - objects that are filled from a dict of fields (argparse.Namespace,
/// torch.distributed.checkpoint.metadata.…):
///   a Map with the fields; from a tuple (TensorProperties): a Map with one entry "state", a list; one that
///   was never filled (BytesStorageMetadata): a Map without entries;
/// - torch.Size, tuples, sets: a list; enums' members, dtypes, devices, opaque objects: Named.
/// `who` begins every message.
Value unpickled(std::span<const std::byte> bytes, const std::string& who);

}  // namespace weft::exchange::torch
