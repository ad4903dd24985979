#include "weft/exchange/torch/nodes.h"

#include <array>
#include <bit>
#include <limits>

namespace weft::exchange::torch {
namespace {

constexpr std::size_t most_nodes = std::numeric_limits<NodeId>::max();
constexpr std::size_t most_shown = 100;

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, most_shown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\')
      out += c;
    else
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
  }
  return text.size() > most_shown ? out + "..." : out;
}

// The first four nodes are those that many share: None, False, True and the empty tuple.
Nodes::Nodes(Place& place) : place_(place) {
  add(NodeKind::none, 0);
  add(NodeKind::boolean, 0);
  add(NodeKind::boolean, 1);
  container(NodeKind::tuple, {});
  for (std::int64_t n = 0; n < 256; ++n) small_.push_back(add(NodeKind::integer, n));
}

NodeId Nodes::add(NodeKind kind, std::int64_t value) {
  if (all_.size() >= most_nodes) place_.refuse("holds more than ", most_nodes, " values");
  all_.push_back({kind, static_cast<std::uint32_t>(place_.byte), value});
  return static_cast<NodeId>(all_.size() - 1);
}

NodeId Nodes::integer(std::int64_t value) {
  if (value >= 0 && value < 256) return small_[static_cast<std::size_t>(value)];
  return add(NodeKind::integer, value);
}

NodeId Nodes::real(double value) { return add(NodeKind::real, std::bit_cast<std::int64_t>(value)); }

NodeId Nodes::text(std::string_view text) {
  texts_.push_back(text);
  return add(NodeKind::text, std::ssize(texts_) - 1);
}

NodeId Nodes::bytes(std::string_view bytes) {
  texts_.push_back(bytes);
  return add(NodeKind::bytes, std::ssize(texts_) - 1);
}

NodeId Nodes::latin1(NodeId text) {
  const auto found = latin1_.find(text);
  if (found != latin1_.end()) return found->second;
  std::string out;
  const std::string_view from = text_of(text);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto lead = static_cast<unsigned char>(from[i]);
    if (lead < 0x80) {
      out += from[i];
      continue;
    }
    // Code points from 128 to 255 are c2 or c3 and one byte more; the text is known to be whole.
    if (lead > 0xc3) place_.refuse("a text that should be bytes holds a letter that is none");
    const auto next = static_cast<unsigned char>(from[++i]);
    out += static_cast<char>(((lead & 3) << 6) | (next & 0x3f));
  }
  decoded_.push_back(std::move(out));
  const NodeId made = bytes(decoded_.back());
  latin1_[text] = made;
  return made;
}

NodeId Nodes::container(NodeKind kind, std::vector<NodeId> items) {
  lists_.push_back(std::move(items));
  taken_.push_back(false);
  return add(kind, std::ssize(lists_) - 1);
}

NodeId Nodes::name(const Known& known) {
  names_.push_back(&known);
  return add(NodeKind::name, std::ssize(names_) - 1);
}

NodeId Nodes::object(const Known& of, NodeId arguments) {
  objects_.push_back({&of, arguments});
  return add(NodeKind::object, std::ssize(objects_) - 1);
}

NodeId Nodes::storage(Storage storage) {
  storages_.push_back(std::move(storage));
  return add(NodeKind::storage, std::ssize(storages_) - 1);
}

NodeId Nodes::tensor(StoredTensor tensor) {
  tensors_.push_back(std::move(tensor));
  return add(NodeKind::tensor, std::ssize(tensors_) - 1);
}

bool Nodes::take(NodeId dict) {
  const bool before = taken_[index(dict)];
  taken_[index(dict)] = true;
  return before;
}

std::string Nodes::shown(NodeId id) const {
  const Node& node = all_[id];
  switch (node.kind) {
    case NodeKind::none:
      return "None";
    case NodeKind::boolean:
      return node.value != 0 ? "True" : "False";
    case NodeKind::integer:
      return weft::text("the number ", node.value);
    case NodeKind::wide:
      return weft::text("a whole number of ", node.value, " bytes");
    case NodeKind::real:
      return weft::text("the number ", std::bit_cast<double>(node.value));
    case NodeKind::text:
      return weft::text("the text '", torch::shown(text_of(id)), "'");
    case NodeKind::bytes:
      return weft::text(text_of(id).size(), " bytes");
    case NodeKind::tuple:
      return weft::text("a tuple of ", items(id).size());
    case NodeKind::list:
      return "a list";
    case NodeKind::set:
      return "a set";
    case NodeKind::dict:
      return "a dict";
    case NodeKind::name:
      return "the name " + name_of(id).full();
    case NodeKind::object:
      return "an object of " + object_of(id).of->full();
    case NodeKind::storage:
      return "a storage";
    case NodeKind::tensor:
      return "a tensor";
  }
  return "nothing";
}

}  // namespace weft::exchange::torch
