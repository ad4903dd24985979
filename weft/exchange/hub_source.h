// Tensors that go by Hugging Face's names, in whatever files they lie.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/checkpoint/safetensors.h"

namespace weft::exchange {

struct Walk;

/// What a tensor of a wrapper is called in its model of text; empty: it is of another part.
using TextName = std::string (*)(std::string_view their_name);

class HubSource {
 public:
  HubSource() = default;
  virtual ~HubSource() = default;
  HubSource(const HubSource&) = delete;
  HubSource& operator=(const HubSource&) = delete;

  /// What messages begin with: a directory.
  virtual std::string who() const = 0;
  virtual std::vector<std::string> names() const = 0;
  /// Names in the files, of other parts than the model of text.
  virtual const std::vector<std::string>& others() const = 0;
  /// Null where there is none; of an entry, its place in a file is of no meaning here.
  virtual const checkpoint::Entry* find(const std::string& name) const = 0;
  /// Some of a tensor's elements, which lie row by row.
  virtual void read(const std::string& name, const Walk& walk, float* to) const = 0;
  /// Whether two hold the same numbers in the same type.
  virtual bool same(const std::string& a, const std::string& b) const = 0;
  /// Of what is stored in codes, which are no numbers yet.
  virtual std::span<const std::byte> bytes(const std::string& name) const = 0;
};

}  // namespace weft::exchange
