// One stream of torch.save: a zip whose records are a pickle and the bytes of tensors. Nothing of it is ever
// run.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "weft/exchange/torch/value.h"

namespace weft::exchange::torch {

class Archive {
 public:
  /// A whole stream, whose bytes outlive this: a .pt file, or an item of a .distcp. `who` begins every
  /// message: a path, or a path and an item's name. Fails with Kind::data unless the records, the pickle and
  /// every tensor's place in its storage are in order. Tensors' bytes are not touched.
  Archive(std::span<const std::byte> bytes, std::string who);
  Archive(Archive&&) noexcept;
  Archive& operator=(Archive&&) noexcept;
  ~Archive();

  [[nodiscard]] const Value& value() const;

  /// The bytes of a contiguous tensor, its own alone; fails for others and for types that weft has not. They
  /// lie at any address, aligned for nothing. Whoever asks first for a storage has its checksum computed, so
  /// that damaged bytes are told from good ones. Threads may ask at once.
  [[nodiscard]] std::span<const std::byte> bytes(const StoredTensor& tensor) const;
  /// The bytes of the whole storage that a tensor, contiguous or not, lies in.
  [[nodiscard]] std::span<const std::byte> storage(const StoredTensor& tensor) const;

 private:
  struct Held;
  std::unique_ptr<Held> held_;
};

}  // namespace weft::exchange::torch
