// What a file of torch.save holds, as a value: numbers, texts, lists, maps, tensors, and names of Python's
// that stay names.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/tensor/dtype.h"

namespace weft::exchange::torch {

/// A tensor in a file: where its elements lie, not the elements.
struct StoredTensor {
  Dtype dtype = Dtype::u8;            // of no meaning where `held` is false
  std::string storage;                // its bytes are the record data/KEY
  std::int64_t storage_elements = 0;  // of the whole storage, which tensors may share
  std::int64_t offset = 0;            // in elements
  std::vector<std::int64_t> size;
  std::vector<std::int64_t> strides;  // in elements
  std::string type = "uint8";         // as torch calls it: "float32", "int16", "float8_e4m3fn"
  std::int64_t width = 1;             // bytes an element
  bool held = true;                   // whether weft has this type

  /// Whether its elements lie next to each other, the last dim innermost.
  [[nodiscard]] bool contiguous() const;
  [[nodiscard]] std::int64_t elements() const;
};

class Value;

/// A dict, or an object of a class that the reader knows.
struct Map {
  std::string type;                              // "" for a dict, else the class: "argparse.Namespace"
  std::vector<std::pair<Value, Value>> entries;  // in the order of the file; no text or number is a key twice
  /// The value of a key that is a text; null where there is none.
  [[nodiscard]] const Value* find(std::string_view key) const;
};

/// What Python would look up by its name: a type ("torch.bfloat16"), an enum's member (its class and value),
/// an object of which only the class is of interest and what it was made of.
struct Named {
  std::string name;
  std::vector<Value> arguments;
};

/// Cheap to copy: what is large is shared and never changed. Values are at most 100 deep and nothing holds
/// itself, but one value may stand in many places.
class Value {
 public:
  Value() = default;  // None
  explicit Value(std::same_as<bool> auto value) : held_(value) {}
  explicit Value(std::int64_t value) : held_(value) {}
  explicit Value(double value) : held_(value) {}
  explicit Value(std::string text);
  explicit Value(std::vector<Value> list);
  explicit Value(Map map);
  explicit Value(StoredTensor tensor);
  explicit Value(Named named);
  static Value of_bytes(std::string bytes);

  /// "a list", "a number", …: for messages.
  [[nodiscard]] std::string_view kind() const;

  [[nodiscard]] bool is_none() const { return std::holds_alternative<std::monostate>(held_); }
  // Each is null where the value is something else.
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&held_); }
  [[nodiscard]] const std::int64_t* integer() const { return std::get_if<std::int64_t>(&held_); }
  [[nodiscard]] const double* real() const { return std::get_if<double>(&held_); }
  /// A str. UTF-8, but that it may hold lone surrogates, as Python's may.
  [[nodiscard]] const std::string* text() const { return shared<std::string>(); }
  /// Python's bytes or bytearray.
  [[nodiscard]] const std::string* bytes() const;
  /// A list, a tuple, a set or a torch.Size.
  [[nodiscard]] const std::vector<Value>* list() const { return shared<std::vector<Value>>(); }
  [[nodiscard]] const Map* map() const { return shared<Map>(); }
  [[nodiscard]] const StoredTensor* tensor() const { return shared<StoredTensor>(); }
  [[nodiscard]] const Named* named() const { return shared<Named>(); }

 private:
  struct Bytes {
    std::string held;
  };
  template <class T>
  using Shared = std::shared_ptr<const T>;
  template <class T>
  [[nodiscard]] const T* shared() const {
    const auto* found = std::get_if<Shared<T>>(&held_);
    return found == nullptr ? nullptr : found->get();
  }

  std::variant<std::monostate, bool, std::int64_t, double, Shared<std::string>, Shared<Bytes>,
               Shared<std::vector<Value>>, Shared<Map>, Shared<StoredTensor>, Shared<Named>>
      held_;
};

}  // namespace weft::exchange::torch
