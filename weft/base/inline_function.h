// A piece of work kept in place: a callable that never touches the heap.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace weft {

/// void() in `capacity` bytes. What does not fit does not compile.
template <std::size_t capacity>
class InlineFunction {
 public:
  InlineFunction() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, InlineFunction>)
      InlineFunction(F&& work) {  // NOLINT(bugprone-forwarding-reference-overload): 14 reads no requires
    using Callable = std::remove_cvref_t<F>;
    static_assert(sizeof(Callable) <= capacity, "the captures are larger than the room kept for them");
    static_assert(std::is_nothrow_move_constructible_v<Callable>);
    new (place_) Callable(std::forward<F>(work));
    words_ = &words_for<Callable>;
  }
  InlineFunction(InlineFunction&& other) noexcept { take(other); }
  InlineFunction& operator=(InlineFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~InlineFunction() { reset(); }

  explicit operator bool() const { return words_ != nullptr; }
  void operator()() { words_->call(place_); }
  void reset() {
    if (const auto* words = std::exchange(words_, nullptr)) words->destroy(place_);
  }

 private:
  struct Words {
    void (*call)(void*);
    void (*move)(void* to, void* from);
    void (*destroy)(void*);
  };
  template <class Callable>
  static constexpr Words words_for = {
      [](void* at) { (*static_cast<Callable*>(at))(); },
      [](void* to, void* from) {
        new (to) Callable(std::move(*static_cast<Callable*>(from)));
        static_cast<Callable*>(from)->~Callable();
      },
      [](void* at) { static_cast<Callable*>(at)->~Callable(); },
  };
  void take(InlineFunction& other) {
    words_ = std::exchange(other.words_, nullptr);
    if (words_) words_->move(place_, other.place_);
  }

  alignas(std::max_align_t) std::byte place_[capacity];
  const Words* words_ = nullptr;
};

}  // namespace weft
