// The index of a checkpoint: which file holds which box of which global tensor, and the hash of every block.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/hash.h"
#include "weft/checkpoint/box.h"
#include "weft/tensor/dtype.h"

namespace weft::checkpoint {

inline constexpr std::int64_t format_version = 1;

/// A box that lies in one stretch of a file, under block_name(). `file` counts in Index::files.
struct Block {
  std::size_t file = 0;
  Box box;
  Hash hash;
};

struct Stored {
  Dtype dtype = Dtype::f32;
  Shape global;
  std::vector<Block> blocks;
};

/// A safetensors file: its size, and the hash of all that is not a block.
struct FileFact {
  std::string name;
  std::int64_t bytes = 0, header_bytes = 0;
  Hash header;
};

/// A small file that the run needs, as "tokenizer/vocab.json": its size, and the hash of all of it.
struct AttachedFact {
  std::string name;
  std::int64_t bytes = 0;
  Hash hash;
};

struct Index {
  std::string facts_file;
  Hash facts;
  std::vector<AttachedFact> attached;  // none before version 1 had them
  std::vector<FileFact> files;
  std::map<std::string, Stored> tensors;
};

/// The name of a block in its file: the tensor's own where it is whole, else "name@1,2+3,4" (offset + shape).
std::string block_name(const std::string& name, const Shape& global, const Box& box);

/// JSON for people and programs; from_json gives the same index back.
std::string to_json(const Index& index);
/// Fails with Kind::data, naming `who`, on anything that to_json would not write: file names that leave the
/// directory, boxes that leave their tensor, files that are not listed.
Index index_from_json(std::string_view json, const std::string& who);

/// Adds one rank's part to the whole; fails where ranks contradict each other about a tensor.
void merge(Index& whole, const Index& part);

/// Fails unless every element of every tensor is held exactly once.
void must_be_whole(const Index& index, const std::string& who);

}  // namespace weft::checkpoint
