// What Python would call while it reads a pickle, as what comes of it. Every name has its own number and
// kinds of arguments; any others are refused.
#pragma once

#include <vector>

#include "weft/exchange/torch/nodes.h"

namespace weft::exchange::torch {

class Calls {
 public:
  Calls(Nodes& nodes, Place& place, StorageBytes storage_bytes)
      : nodes_(nodes), place_(place), storage_bytes_(std::move(storage_bytes)) {}

  /// callee(*arguments)
  NodeId reduce(NodeId callee, NodeId arguments);
  /// cls.__new__(cls, *arguments)
  NodeId make(NodeId cls, NodeId arguments);
  /// object.__setstate__(state)
  void build(NodeId object, NodeId state);
  /// The storage that a persistent id names: ("storage", class, key, location, elements).
  NodeId storage(NodeId id);

 private:
  using Items = std::vector<NodeId>;

  const Known& callable(NodeId callee, NodeId arguments) const;
  [[noreturn]] void refuse_call(const Known& of, NodeId arguments, std::string_view expected) const;
  bool is(NodeId id, NodeKind kind) const { return nodes_.is(id, kind); }
  bool is_plain(NodeId id) const;
  bool is_dtype_object(NodeId id) const;

  NodeId tensor(const Known& of, NodeId arguments);
  void must_lie_within(const StoredTensor& tensor) const;
  std::vector<std::int64_t> whole_numbers(NodeId tuple, std::string_view what) const;
  NodeId parameter(const Known& of, NodeId arguments);
  NodeId tensor_class(const Known& of, NodeId arguments);
  NodeId size(const Known& of, NodeId arguments);
  NodeId marked(const Known& of, NodeId arguments);
  NodeId empty(const Known& of, NodeId arguments);
  NodeId array(const Known& of, NodeId arguments);
  NodeId array_dtype(const Known& of, NodeId arguments);
  NodeId array_scalar(const Known& of, NodeId arguments);
  NodeId encode(const Known& of, NodeId arguments);
  NodeId bytes(const Known& of, NodeId arguments);
  NodeId set(const Known& of, NodeId arguments);
  NodeId reconstructor(const Known& of, NodeId arguments);
  bool fits(const Object& object, NodeId state) const;

  Nodes& nodes_;
  Place& place_;
  StorageBytes storage_bytes_;
};

}  // namespace weft::exchange::torch
