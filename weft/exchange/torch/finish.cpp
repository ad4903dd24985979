// From numbered nodes to values, from the leaves up and without a recursion that a file could drive.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "weft/exchange/torch/nodes.h"

namespace weft::exchange::torch {
namespace {

constexpr std::size_t deepest = 100;
// A value may stand in many places, each time at the cost of two bytes, so that what it amounts to for
// whoever walks
// // it grows by powers. Files of Megatron's and DeepSpeed's stay below 4 for each that they hold.
constexpr std::uint64_t always_allowed = 1'000'000;
constexpr std::uint64_t allowed_for_each = 64;

class Finish {
 public:
  Finish(const Nodes& nodes, Place& place)
      : nodes_(nodes),
        place_(place),
        limit_(always_allowed + allowed_for_each * nodes.size()),
        done_(nodes.size()),
        state_(nodes.size(), State::open) {}

  Value run(NodeId top);

 private:
  enum class State : std::uint8_t { open, under_way, finished };
  struct Done {
    Value value;
    std::uint64_t amount = 0;  // values, where each is written out wherever it stands
    std::uint8_t height = 0;
    bool may_be_key = true;
  };
  struct Visit {
    NodeId id;
    std::size_t next = 0;
  };

  [[nodiscard]] std::size_t children(NodeId id) const;
  [[nodiscard]] NodeId child(NodeId id, std::size_t i) const;
  void enter(std::vector<Visit>& way, NodeId id);
  void leave(NodeId id);
  Value value(NodeId id) const;
  Value list(NodeId id) const;
  std::vector<std::pair<Value, Value>> entries(NodeId dict) const;
  Value object(const Object& object) const;
  void must_be_keys(NodeId dict) const;
  [[nodiscard]] const std::vector<NodeId>* fields(const Object& object) const;

  const Nodes& nodes_;
  Place& place_;
  std::uint64_t limit_;
  std::vector<Done> done_;
  std::vector<State> state_;
};

Value Finish::run(NodeId top) {
  std::vector<Visit> way;
  enter(way, top);
  while (!way.empty()) {
    Visit& visit = way.back();
    if (visit.next == children(visit.id)) {
      leave(visit.id);
      way.pop_back();
      continue;
    }
    const NodeId id = child(visit.id, visit.next++);
    if (state_[id] != State::finished) enter(way, id);
  }
  return done_[top].value;
}

// The dict that fills an object with fields is passed over: its keys and values are the object's.
const std::vector<NodeId>* Finish::fields(const Object& object) const {
  if (!object.filled || object.of->use == Use::opaque || !nodes_.is(object.state, NodeKind::dict))
    return nullptr;
  return &nodes_.items(object.state);
}

std::size_t Finish::children(NodeId id) const {
  switch (nodes_.at(id).kind) {
    case NodeKind::tuple:
    case NodeKind::list:
    case NodeKind::set:
    case NodeKind::dict:
      return nodes_.items(id).size();
    case NodeKind::object: {
      const Object& object = nodes_.object_of(id);
      if (const auto* items = fields(object)) return items->size();
      return object.filled ? 2 : 1;
    }
    default:
      return 0;
  }
}

NodeId Finish::child(NodeId id, std::size_t i) const {
  if (!nodes_.is(id, NodeKind::object)) return nodes_.items(id)[i];
  const Object& object = nodes_.object_of(id);
  if (const auto* items = fields(object)) return (*items)[i];
  return i == 0 ? object.arguments : object.state;
}

void Finish::enter(std::vector<Visit>& way, NodeId id) {
  place_.byte = nodes_.at(way.empty() ? id : way.back().id).at;
  if (state_[id] == State::under_way) place_.refuse(nodes_.shown(id), " holds itself");
  if (way.size() > deepest) place_.refuse("values lie more than ", deepest, " deep in each other");
  state_[id] = State::under_way;
  way.push_back({id});
}

void Finish::leave(NodeId id) {
  place_.byte = nodes_.at(id).at;
  Done& done = done_[id];
  const NodeKind kind = nodes_.at(id).kind;
  done.amount = 1;
  for (std::size_t i = 0; i < children(id); ++i) {
    const Done& below = done_[child(id, i)];
    done.amount += below.amount;
    done.height = std::max<std::uint8_t>(done.height, static_cast<std::uint8_t>(below.height + 1));
    if (kind == NodeKind::tuple) done.may_be_key = done.may_be_key && below.may_be_key;
    if (done.amount > limit_) {
      place_.refuse("what it holds stands in so many places that it amounts to more than ", limit_,
                    " values");
    }
  }
  if (done.height > deepest) place_.refuse("values lie more than ", deepest, " deep in each other");
  if (kind == NodeKind::list || kind == NodeKind::set || kind == NodeKind::dict) done.may_be_key = false;
  done.value = value(id);
  state_[id] = State::finished;
}

Value Finish::value(NodeId id) const {
  const Node& node = nodes_.at(id);
  switch (node.kind) {
    case NodeKind::none:
      return {};
    case NodeKind::boolean:
      return Value(node.value != 0);
    case NodeKind::integer:
      return Value(node.value);
    case NodeKind::wide:
      return Value(Named{"int", {}});
    case NodeKind::real:
      return Value(std::bit_cast<double>(node.value));
    case NodeKind::text:
      return Value(std::string(nodes_.text_of(id)));
    case NodeKind::bytes:
      return Value::of_bytes(std::string(nodes_.text_of(id)));
    case NodeKind::tuple:
    case NodeKind::list:
    case NodeKind::set:
      return list(id);
    case NodeKind::dict:
      return Value(Map{"", entries(id)});
    case NodeKind::name:
      return Value(Named{nodes_.name_of(id).full(), {}});
    case NodeKind::object:
      return object(nodes_.object_of(id));
    case NodeKind::storage:
      return Value(
          Named{weft::text("torch.", nodes_.storage_of(id).untyped ? "UntypedStorage"
                                                                   : nodes_.storage_of(id).type->storage),
                {}});
    case NodeKind::tensor:
      return Value(nodes_.tensor_of(id));
  }
  return {};
}

Value Finish::list(NodeId id) const {
  std::vector<Value> out;
  out.reserve(nodes_.items(id).size());
  for (const NodeId item : nodes_.items(id)) out.push_back(done_[item].value);
  return Value(std::move(out));
}

std::vector<std::pair<Value, Value>> Finish::entries(NodeId dict) const {
  must_be_keys(dict);
  const std::vector<NodeId>& items = nodes_.items(dict);
  std::vector<std::pair<Value, Value>> out;
  out.reserve(items.size() / 2);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    out.emplace_back(done_[items[i]].value, done_[items[i + 1]].value);
  return out;
}

// Texts and whole numbers alone are compared. Objects, and tuples of whatever, are their readers' affair.
void Finish::must_be_keys(NodeId dict) const {
  const std::vector<NodeId>& items = nodes_.items(dict);
  std::vector<std::string_view> texts;
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const NodeId key = items[i];
    if (!done_[key].may_be_key || nodes_.is(key, NodeKind::tensor))
      place_.refuse("a dict's key is ", nodes_.shown(key), ", which no dict may have");
    if (nodes_.is(key, NodeKind::text)) texts.push_back(nodes_.text_of(key));
    if (nodes_.is(key, NodeKind::integer)) numbers.push_back(nodes_.at(key).value);
  }
  std::sort(texts.begin(), texts.end());
  std::sort(numbers.begin(), numbers.end());
  const auto text = std::adjacent_find(texts.begin(), texts.end());
  if (text != texts.end()) place_.refuse("a dict has the key '", torch::shown(*text), "' twice");
  const auto number = std::adjacent_find(numbers.begin(), numbers.end());
  if (number != numbers.end()) place_.refuse("a dict has the key ", *number, " twice");
}

Value Finish::object(const Object& object) const {
  const std::string name = object.of->full();
  const Value arguments = done_[object.arguments].value;
  switch (object.of->use) {
    case Use::marked:
    case Use::array_scalar:
      return Value(Named{name, *arguments.list()});
    case Use::opaque:
      if (!object.filled) return Value(Named{name, {arguments}});
      return Value(Named{name, {arguments, done_[object.state].value}});
    default:
      break;
  }
  Map map{name, {}};
  if (fields(object) != nullptr) return Value(Map{name, entries(object.state)});
  if (object.of->use == Use::array_dtype)
    map.entries.emplace_back(Value(std::string("arguments")), arguments);
  if (object.filled) map.entries.emplace_back(Value(std::string("state")), done_[object.state].value);
  return Value(std::move(map));
}

}  // namespace

Value finish(const Nodes& nodes, NodeId top, Place& place) { return Finish(nodes, place).run(top); }

}  // namespace weft::exchange::torch
