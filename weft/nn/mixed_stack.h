// Memory for things of many types that are put away and taken back; nothing is asked of the heap once it has
// grown.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <typeinfo>
#include <utility>
#include <vector>

#include "weft/base/error.h"

namespace weft {

/// A stack of values of different types, and a line of work in the order it was put away. Chunks are kept
/// when it empties, so a second round of the same size allocates nothing.
class MixedStack {
 public:
  MixedStack() = default;
  MixedStack(MixedStack&&) = default;
  MixedStack& operator=(MixedStack&&) = delete;
  ~MixedStack() { clear(); }

  template <class T>
  void push(T value) {
    void* at = room(sizeof(T), alignof(T));
    entries_.push_back({new (at) T(std::move(value)), &words_for<T>});
  }

  /// Takes back the latest, which must be a T.
  template <class T>
  T pop() {
    if (entries_.empty()) fail(Kind::internal, "pass: ", typeid(T).name(), " was never saved");
    const Entry entry = entries_.back();
    if (*entry.words->type != typeid(T))
      fail(Kind::internal, "pass: backward out of order, wanted ", typeid(T).name(), ", found ",
           entry.words->type->name());
    T value = std::move(*static_cast<T*>(entry.at));
    entry.words->destroy(entry.at);
    entries_.pop_back();
    give_back(entry.at);
    return value;
  }

  /// Calls every callable that was pushed, first to last, and forgets each as soon as it is done.
  void run_all() {
    for (Entry& entry : entries_) {
      entry.words->call(entry.at);
      entry.words->destroy(entry.at);
      entry.words = &nothing;
    }
    clear();
  }

  bool empty() const { return entries_.empty(); }
  void clear();

 private:
  struct Words {
    const std::type_info* type;
    void (*destroy)(void*);
    void (*call)(void*);
  };
  struct Entry {
    void* at;
    const Words* words;
  };
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    std::size_t size = 0, used = 0;
  };
  template <class T>
  static void call(void* at) {
    if constexpr (requires(T & work) { work(); }) (*static_cast<T*>(at))();
  }
  template <class T>
  static constexpr Words words_for = {&typeid(T), [](void* at) { static_cast<T*>(at)->~T(); }, &call<T>};
  static constexpr Words nothing = {&typeid(void), [](void*) {}, [](void*) {}};

  void* room(std::size_t size, std::size_t align);
  void give_back(void* at);

  std::vector<Entry> entries_;
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // the one that is being filled
};

}  // namespace weft
