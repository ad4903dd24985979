#include "weft/exchange/torch/machine.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "weft/exchange/torch/utf8.h"

namespace weft::exchange::torch {
namespace {

static_assert(std::endian::native == std::endian::little, "a pickle's numbers are little endian");

constexpr NodeId nothing = std::numeric_limits<NodeId>::max();
// numpy's generators and counts of operations hold such; longer ones are nobody's.
constexpr std::uint64_t widest_whole = 16;

// Python's that no file of torch's has: texts of protocol 0, numbers that stand for names, what lies
// elsewhere.
constexpr auto refused_opcodes = std::to_array<std::pair<std::uint8_t, const char*>>({
    {'I', "INT"},
    {'L', "LONG"},
    {'F', "FLOAT"},
    {'S', "STRING"},
    {'T', "BINSTRING"},
    {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"},
    {'P', "PERSID"},
    {'p', "PUT"},
    {'g', "GET"},
    {'d', "DICT"},
    {'l', "LIST"},
    {'i', "INST"},
    {'o', "OBJ"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
});

}  // namespace

Machine::Machine(std::span<const std::byte> pickle, Place& place, StorageBytes storage_bytes)
    : pickle_(reinterpret_cast<const char*>(pickle.data()), pickle.size()),
      place_(place),
      nodes_(place),
      calls_(nodes_, place, std::move(storage_bytes)) {}

Value Machine::run() {
  if (pickle_.size() > std::numeric_limits<std::uint32_t>::max())
    place_.refuse("a pickle of ", pickle_.size(), " bytes, at most 4 GiB are read");
  static const std::array<Opcode, 256> opcodes = by_code();
  for (bool first = true;; first = false) {
    place_.byte = at_;
    const auto code = static_cast<std::uint8_t>(take(1)[0]);
    const bool is_protocol = code == 0x80;
    if (first && !is_protocol) place_.refuse("begins with ", int{code}, ", expected a pickle's 128");
    if (!first && is_protocol) place_.refuse("a second PROTO");
    if (code == '.') break;
    const Opcode& opcode = opcodes[code];
    if (opcode.run == nullptr && opcode.name != nullptr)
      place_.refuse("the opcode ", opcode.name, " is none that a checkpoint needs");
    if (opcode.run == nullptr) place_.refuse("there is no opcode ", int{code});
    (this->*opcode.run)();
  }
  if (!marks_.empty() || stack_.size() != 1)
    place_.refuse("STOP with ", stack_.size(), " values and ", marks_.size(),
                  " marks left, expected one value");
  if (at_ != pickle_.size()) place_.refuse("STOP with ", pickle_.size() - at_, " bytes behind it");
  return finish(nodes_, stack_.back(), place_);
}

std::string_view Machine::take(std::uint64_t bytes) {
  const std::uint64_t left = pickle_.size() - at_;
  if (bytes > left)
    place_.refuse("ends ", left, " bytes behind byte ", at_, ", expected ", bytes, " more: it is cut short");
  const std::string_view taken = pickle_.substr(at_, bytes);
  at_ += bytes;
  return taken;
}

template <class T>
T Machine::number() {
  T value;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}

std::string_view Machine::line() {
  const std::size_t end = pickle_.find('\n', at_);
  if (end == std::string_view::npos) place_.refuse("a name without its end: it is cut short");
  const std::string_view whole = take(end + 1 - at_);
  return whole.substr(0, whole.size() - 1);
}

std::size_t Machine::above_mark() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

NodeId Machine::top() {
  if (above_mark() == 0) place_.refuse("takes a value where there is none");
  return stack_.back();
}

NodeId Machine::pop() {
  const NodeId id = top();
  stack_.pop_back();
  return id;
}

std::vector<NodeId> Machine::pop_to_mark() {
  if (marks_.empty()) place_.refuse("takes what lies above a mark, and there is none");
  const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<NodeId> out(from, stack_.end());
  stack_.erase(from, stack_.end());
  marks_.pop_back();
  return out;
}

// As Python does: a mark is popped like a value.
void Machine::pop_any() {
  if (!marks_.empty() && marks_.back() == stack_.size())
    marks_.pop_back();
  else
    (void)pop();
}

void Machine::protocol() {
  const int version = number<std::uint8_t>();
  if (version < 2 || version > 5) place_.refuse("a pickle of protocol ", version, ", expected 2 to 5");
}

// Frames only tell a reader how much to fetch; what they say is not held to.
void Machine::frame() { (void)number<std::uint64_t>(); }

void Machine::remember(std::uint64_t at) {
  const NodeId id = top();
  if (at > place_.byte) place_.refuse("remembers a value as number ", at, ", more than there can be so far");
  if (at >= memo_.size()) memo_.resize(at + 1, nothing);
  memo_[at] = id;
}

void Machine::recall(std::uint64_t at) {
  if (at >= memo_.size() || memo_[at] == nothing)
    place_.refuse("asks for the remembered value ", at, ", which there is not");
  push(memo_[at]);
}

template <class T>
void Machine::long_whole() {
  const std::uint64_t length = number<T>();
  const std::string_view digits = take(length);
  if (length > widest_whole)
    place_.refuse("a whole number of ", length, " bytes, at most ", widest_whole, " are read");
  if (length > sizeof(std::int64_t)) return push(nodes_.wide(static_cast<std::int64_t>(length)));
  std::int64_t value = !digits.empty() && static_cast<signed char>(digits.back()) < 0 ? -1 : 0;
  std::memcpy(&value, digits.data(), digits.size());
  push(nodes_.integer(value));
}

void Machine::real() {
  auto bits = number<std::uint64_t>();
  bits = __builtin_bswap64(bits);
  push(nodes_.real(std::bit_cast<double>(bits)));
}

template <class T>
void Machine::text() {
  const std::string_view text = take(number<T>());
  if (!is_utf8(text)) place_.refuse("a text of ", text.size(), " bytes is not UTF-8");
  push(nodes_.text(text));
}

template <class T>
void Machine::bytes() {
  push(nodes_.bytes(take(number<T>())));
}

template <std::size_t n>
void Machine::short_tuple() {
  std::vector<NodeId> items(n);
  for (std::size_t i = n; i-- > 0;) items[i] = pop();
  push(nodes_.container(NodeKind::tuple, std::move(items)));
}

void Machine::tuple() { push(nodes_.container(NodeKind::tuple, pop_to_mark())); }

// Nobody tells one from a tuple: it never changes and may be a key.
void Machine::frozen_set() { tuple(); }

void Machine::grow(NodeKind kind, std::vector<NodeId> items) {
  const NodeId into = top();
  if (!nodes_.is(into, kind))
    place_.refuse("puts ", items.size(), " values into ", nodes_.shown(into), ", expected ",
                  kind == NodeKind::list  ? "a list"
                  : kind == NodeKind::set ? "a set"
                                          : "a dict");
  if (kind == NodeKind::dict && items.size() % 2 != 0)
    place_.refuse("a dict is given ", items.size(), " keys and values, expected as many keys as values");
  std::vector<NodeId>& held = nodes_.items(into);
  held.insert(held.end(), items.begin(), items.end());
}

void Machine::append() {
  const NodeId item = pop();
  grow(NodeKind::list, {item});
}

void Machine::set_item() {
  const NodeId value = pop();
  const NodeId key = pop();
  grow(NodeKind::dict, {key, value});
}

void Machine::name(std::string_view module, std::string_view name) {
  const Known* found = known(module, name);
  if (found == nullptr) {
    fail(Kind::data, place_.who, ": runs Python code when it is read: byte ", place_.byte, place_.part,
         " asks for ", torch::shown(module), ".", torch::shown(name),
         ", which is no name that a checkpoint needs; nothing of it was run");
  }
  push(nodes_.name(*found));
}

void Machine::global() {
  const std::string_view module = line();
  name(module, line());
}

void Machine::stack_global() {
  const NodeId wanted = pop();
  const NodeId module = pop();
  if (!nodes_.is(module, NodeKind::text) || !nodes_.is(wanted, NodeKind::text))
    place_.refuse("STACK_GLOBAL of ", nodes_.shown(module), " and ", nodes_.shown(wanted),
                  ", expected two texts");
  name(nodes_.text_of(module), nodes_.text_of(wanted));
}

void Machine::reduce() {
  const NodeId arguments = pop();
  push(calls_.reduce(pop(), arguments));
}

void Machine::new_object() {
  const NodeId arguments = pop();
  push(calls_.make(pop(), arguments));
}

void Machine::new_object_with_words() {
  const NodeId words = pop();
  if (!nodes_.is(words, NodeKind::dict) || !nodes_.items(words).empty())
    place_.refuse("NEWOBJ_EX with ", nodes_.shown(words), " for arguments by name, expected an empty dict");
  new_object();
}

void Machine::build() {
  const NodeId state = pop();
  calls_.build(top(), state);
}

void Machine::persistent_id() { push(calls_.storage(pop())); }

// What a checkpoint may hold, by its code.
std::array<Machine::Opcode, 256> Machine::by_code() {
  struct Row {
    std::uint8_t code;
    Opcode opcode;
  };
  constexpr auto rows = std::to_array<Row>({
      {0x80, {"PROTO", &Machine::protocol}},
      {0x95, {"FRAME", &Machine::frame}},
      {'(', {"MARK", &Machine::mark}},
      {'0', {"POP", &Machine::pop_any}},
      {'1', {"POP_MARK", &Machine::pop_mark}},
      {'2', {"DUP", &Machine::duplicate}},
      {'q', {"BINPUT", &Machine::put<std::uint8_t>}},
      {'r', {"LONG_BINPUT", &Machine::put<std::uint32_t>}},
      {0x94, {"MEMOIZE", &Machine::memoize}},
      {'h', {"BINGET", &Machine::get<std::uint8_t>}},
      {'j', {"LONG_BINGET", &Machine::get<std::uint32_t>}},
      {'N', {"NONE", &Machine::push_none}},
      {0x88, {"NEWTRUE", &Machine::push_true}},
      {0x89, {"NEWFALSE", &Machine::push_false}},
      {'J', {"BININT", &Machine::whole<std::int32_t>}},
      {'K', {"BININT1", &Machine::whole<std::uint8_t>}},
      {'M', {"BININT2", &Machine::whole<std::uint16_t>}},
      {0x8a, {"LONG1", &Machine::long_whole<std::uint8_t>}},
      {0x8b, {"LONG4", &Machine::long_whole<std::uint32_t>}},
      {'G', {"BINFLOAT", &Machine::real}},
      {'X', {"BINUNICODE", &Machine::text<std::uint32_t>}},
      {0x8c, {"SHORT_BINUNICODE", &Machine::text<std::uint8_t>}},
      {0x8d, {"BINUNICODE8", &Machine::text<std::uint64_t>}},
      {'B', {"BINBYTES", &Machine::bytes<std::uint32_t>}},
      {'C', {"SHORT_BINBYTES", &Machine::bytes<std::uint8_t>}},
      {0x8e, {"BINBYTES8", &Machine::bytes<std::uint64_t>}},
      {0x96, {"BYTEARRAY8", &Machine::bytes<std::uint64_t>}},
      {')', {"EMPTY_TUPLE", &Machine::empty_tuple}},
      {0x85, {"TUPLE1", &Machine::short_tuple<1>}},
      {0x86, {"TUPLE2", &Machine::short_tuple<2>}},
      {0x87, {"TUPLE3", &Machine::short_tuple<3>}},
      {'t', {"TUPLE", &Machine::tuple}},
      {']', {"EMPTY_LIST", &Machine::empty_container<NodeKind::list>}},
      {'a', {"APPEND", &Machine::append}},
      {'e', {"APPENDS", &Machine::appends}},
      {'}', {"EMPTY_DICT", &Machine::empty_container<NodeKind::dict>}},
      {'s', {"SETITEM", &Machine::set_item}},
      {'u', {"SETITEMS", &Machine::set_items}},
      {0x8f, {"EMPTY_SET", &Machine::empty_container<NodeKind::set>}},
      {0x90, {"ADDITEMS", &Machine::add_items}},
      {0x91, {"FROZENSET", &Machine::frozen_set}},
      {'c', {"GLOBAL", &Machine::global}},
      {0x93, {"STACK_GLOBAL", &Machine::stack_global}},
      {'R', {"REDUCE", &Machine::reduce}},
      {0x81, {"NEWOBJ", &Machine::new_object}},
      {0x92, {"NEWOBJ_EX", &Machine::new_object_with_words}},
      {'b', {"BUILD", &Machine::build}},
      {'Q', {"BINPERSID", &Machine::persistent_id}},
  });
  std::array<Opcode, 256> out{};
  for (const auto& [code, name] : refused_opcodes) out[code].name = name;
  for (const Row& row : rows) out[row.code] = row.opcode;
  return out;
}

}  // namespace weft::exchange::torch
