// The opcodes of a pickle, one after the other, on a stack of values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weft/exchange/torch/calls.h"
#include "weft/exchange/torch/nodes.h"

namespace weft::exchange::torch {

class Machine {
 public:
  /// Where it is at an opcode, `place` says.
  Machine(std::span<const std::byte> pickle, Place& place, StorageBytes storage_bytes);

  Value run();

 private:
  struct Opcode {
    const char* name = nullptr;
    void (Machine::*run)() = nullptr;  // null where it is refused
  };
  static std::array<Opcode, 256> by_code();

  // Bytes behind an opcode.
  std::string_view take(std::uint64_t bytes);
  template <class T>
  T number();
  std::string_view line();

  // The stack. Nothing below the last mark can be taken.
  void push(NodeId id) { stack_.push_back(id); }
  [[nodiscard]] std::size_t above_mark() const;
  NodeId pop();
  NodeId top();
  std::vector<NodeId> pop_to_mark();

  void mark() { marks_.push_back(stack_.size()); }
  void pop_any();
  void pop_mark() { (void)pop_to_mark(); }
  void duplicate() { push(top()); }
  void protocol();
  void frame();

  void remember(std::uint64_t at);
  void recall(std::uint64_t at);
  template <class T>
  void put() {
    remember(number<T>());
  }
  template <class T>
  void get() {
    recall(number<T>());
  }
  void memoize() { remember(memo_.size()); }

  void push_none() { push(nodes_.none()); }
  void push_true() { push(nodes_.boolean(true)); }
  void push_false() { push(nodes_.boolean(false)); }
  template <class T>
  void whole() {
    push(nodes_.integer(std::int64_t{number<T>()}));
  }
  template <class T>
  void long_whole();
  void real();
  template <class T>
  void text();
  template <class T>
  void bytes();

  void empty_tuple() { push(nodes_.empty_tuple()); }
  template <std::size_t n>
  void short_tuple();
  void tuple();
  template <NodeKind kind>
  void empty_container() {
    push(nodes_.container(kind, {}));
  }
  void frozen_set();
  void grow(NodeKind kind, std::vector<NodeId> items);
  void append();
  void appends() { grow(NodeKind::list, pop_to_mark()); }
  void set_item();
  void set_items() { grow(NodeKind::dict, pop_to_mark()); }
  void add_items() { grow(NodeKind::set, pop_to_mark()); }

  void name(std::string_view module, std::string_view name);
  void global();
  void stack_global();
  void reduce();
  void new_object();
  void new_object_with_words();
  void build();
  void persistent_id();

  std::string_view pickle_;
  std::size_t at_ = 0;
  Place& place_;
  Nodes nodes_;
  Calls calls_;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;
  std::vector<NodeId> memo_;
};

}  // namespace weft::exchange::torch
