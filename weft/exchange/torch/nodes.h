// A pickle while it is read. A container may still grow when others already hold it, so everything is held by
// number; finish() makes values of them when nothing changes any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/exchange/torch/names.h"
#include "weft/exchange/torch/value.h"

namespace weft::exchange::torch {

using NodeId = std::uint32_t;

enum class NodeKind : std::uint8_t {
  none,
  boolean,
  integer,
  wide,  // a whole number of more than 64 bits
  real,  // its bits
  text,  // and below: a place in texts_
  bytes,
  tuple,  // and below: a place in lists_
  list,
  set,
  dict,     // keys and values in turn
  name,     // a place in names_
  object,   // a place in objects_
  storage,  // a place in storages_
  tensor,   // a place in tensors_
};

/// What a pickle of a storage says of it.
struct Storage {
  const ElementType* type = nullptr;
  bool untyped = false;
  std::string key;
  std::int64_t elements = 0;
};

/// Something made by calling a name.
struct Object {
  const Known* of = nullptr;
  NodeId arguments = 0;  // a tuple
  bool filled = false;
  NodeId state = 0;  // where it is filled
};

struct Node {
  NodeKind kind;
  std::uint32_t at;  // byte of the pickle
  std::int64_t value;
};

/// How large the record of a storage is, by its key; below 0 where there is none. Empty where no tensors may
/// be.
using StorageBytes = std::function<std::int64_t(const std::string&)>;

/// Whose pickle it is and how far reading has come, so that whoever refuses can say where.
struct Place {
  std::string who;
  std::string part;  // " of data.pkl", or nothing
  std::size_t byte = 0;

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(Kind::data, who, ": byte ", byte, part, ": ", parts...);
  }
};

/// A text of a file's as it may stand in a message: one line, not long.
std::string shown(std::string_view text);

class Nodes {
 public:
  explicit Nodes(Place& place);

  NodeId none() const { return 0; }
  NodeId boolean(bool value) const { return value ? 2 : 1; }
  NodeId integer(std::int64_t value);
  NodeId wide(std::int64_t bytes) { return add(NodeKind::wide, bytes); }
  NodeId real(double value);
  /// The text lies in the pickle.
  NodeId text(std::string_view text);
  NodeId bytes(std::string_view bytes);
  /// What encode(text, "latin1") gives; one node however often it is asked for.
  NodeId latin1(NodeId text);
  NodeId empty_tuple() const { return 3; }
  NodeId container(NodeKind kind, std::vector<NodeId> items);
  NodeId name(const Known& known);
  NodeId object(const Known& of, NodeId arguments);
  NodeId storage(Storage storage);
  NodeId tensor(StoredTensor tensor);

  [[nodiscard]] const Node& at(NodeId id) const { return all_[id]; }
  [[nodiscard]] bool is(NodeId id, NodeKind kind) const { return all_[id].kind == kind; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] std::string_view text_of(NodeId id) const { return texts_[index(id)]; }
  [[nodiscard]] std::vector<NodeId>& items(NodeId id) { return lists_[index(id)]; }
  [[nodiscard]] const std::vector<NodeId>& items(NodeId id) const { return lists_[index(id)]; }
  [[nodiscard]] const Known& name_of(NodeId id) const { return *names_[index(id)]; }
  [[nodiscard]] Object& object_of(NodeId id) { return objects_[index(id)]; }
  [[nodiscard]] const Object& object_of(NodeId id) const { return objects_[index(id)]; }
  [[nodiscard]] const Storage& storage_of(NodeId id) const { return storages_[index(id)]; }
  [[nodiscard]] const StoredTensor& tensor_of(NodeId id) const { return tensors_[index(id)]; }
  /// Whether a dict fills an object already; from now on it does.
  bool take(NodeId dict);

  /// "the name torch.Size", "a list", "the number 3": for messages.
  [[nodiscard]] std::string shown(NodeId id) const;

 private:
  NodeId add(NodeKind kind, std::int64_t value);
  [[nodiscard]] std::size_t index(NodeId id) const { return static_cast<std::size_t>(all_[id].value); }

  Place& place_;
  std::vector<Node> all_;
  std::vector<NodeId> small_;  // whole numbers from 0 to 255
  std::vector<std::string_view> texts_;
  std::deque<std::string> decoded_;
  std::map<NodeId, NodeId> latin1_;
  std::vector<std::vector<NodeId>> lists_;
  std::vector<bool> taken_;  // of lists_
  std::vector<const Known*> names_;
  std::vector<Object> objects_;
  std::vector<Storage> storages_;
  std::vector<StoredTensor> tensors_;
};

/// What a node and all below it stand for. Fails where something holds itself, lies more than 100 deep, is a
/// key that no dict may have or the same one twice.
Value finish(const Nodes& nodes, NodeId top, Place& place);

}  // namespace weft::exchange::torch
