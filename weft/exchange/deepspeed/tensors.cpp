#include "weft/exchange/deepspeed/tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/exchange/their_weights.h"

namespace weft::exchange::deepspeed {
namespace {

constexpr std::int64_t compared_at_once = 4096;

}  // namespace

void Tape::add(const torch::Archive& archive, const torch::StoredTensor& stored) {
  if (!stored.held || !is_float(stored.dtype))
    fail(Kind::data, who_, " is of ", stored.type, ", expected float32, bfloat16 or float16");
  if (!stored.contiguous())
    fail(Kind::data, who_, " has elements that do not lie next to each other, expected flat buffers");
  const std::int64_t count = stored.elements();
  if (count == 0) return;
  if (length_ > 0 && stored.dtype != dtype_)
    fail(Kind::data, who_, " is of ", name(dtype_), " in one place and of ", name(stored.dtype),
         " in another");
  dtype_ = stored.dtype;
  buffers_.push_back(
      {.begin = length_, .count = count, .archive = &archive, .stored = &stored, .first = stored.offset});
  length_ += count;
}

void Tape::cut(const std::string& name, std::int64_t from, std::int64_t count,
               std::vector<Piece>& into) const {
  if (from > length_ || count > length_ - from)
    fail(Kind::data, who_, " holds ", length_, " numbers, and ", name, " would be ", count,
         " of them behind ", from);
  while (count > 0) {
    const Piece& buffer = *(std::ranges::upper_bound(buffers_, from, {}, &Piece::begin) - 1);
    Piece piece = buffer;
    piece.begin = into.empty() ? 0 : into.back().begin + into.back().count;
    piece.first += from - buffer.begin;
    piece.count = std::min(count, buffer.begin + buffer.count - from);
    into.push_back(piece);
    from += piece.count;
    count -= piece.count;
  }
}

void Tensors::add(const std::string& name, const Shape& shape, Dtype dtype, std::vector<Piece> pieces) {
  Held held{.entry = {.name = name, .dtype = dtype, .shape = shape}, .pieces = std::move(pieces)};
  if (!all_.try_emplace(name, std::move(held)).second) fail(Kind::data, who_, ": holds ", name, " twice");
}

void Tensors::also(const std::string& second, const std::string& first) {
  if (const auto found = all_.find(first); found != all_.end()) all_.try_emplace(second, found->second);
}

void Tensors::rename(TextName text) {
  if (text == nullptr) return;
  for (const auto& [name, held] : std::exchange(all_, {})) {
    const std::string alone = text(name);
    if (alone.empty())
      others_.push_back(name);
    else
      add(alone, held.entry.shape, held.entry.dtype, held.pieces);
  }
}

std::vector<std::string> Tensors::names() const {
  std::vector<std::string> out;
  for (const auto& [name, held] : all_) out.push_back(name);
  return out;
}

const checkpoint::Entry* Tensors::find(const std::string& name) const {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second.entry;
}

void Tensors::read(const std::string& name, const Walk& walk, float* to) const {
  const Held& held = all_.at(name);
  for (std::int64_t done = 0; done < walk.count;) {
    const std::int64_t at = walk.first + done * walk.step;
    const Piece& piece = *(std::ranges::upper_bound(held.pieces, at, {}, &Piece::begin) - 1);
    const std::int64_t in_piece = divide_up(piece.begin + piece.count - at, walk.step);
    const std::int64_t now = std::min(walk.count - done, in_piece);
    widen(piece.archive->storage(*piece.stored), held.entry.dtype,
          {piece.first + at - piece.begin, walk.step, now}, to + done);
    done += now;
  }
}

bool Tensors::same(const std::string& a, const std::string& b) const {
  const Held &one = all_.at(a), &other = all_.at(b);
  if (one.entry.shape != other.entry.shape || one.entry.dtype != other.entry.dtype) return false;
  std::vector<float> left(std::size_t{compared_at_once}), right(left.size());
  const std::int64_t all = one.entry.shape.elements();
  for (std::int64_t at = 0; at < all; at += compared_at_once) {
    const std::int64_t now = std::min(compared_at_once, all - at);
    read(a, {at, 1, now}, left.data());
    read(b, {at, 1, now}, right.data());
    if (std::memcmp(left.data(), right.data(), std::size_t(now) * sizeof(float)) != 0) return false;
  }
  return true;
}

std::span<const std::byte> Tensors::bytes(const std::string& name) const {
  fail(Kind::internal, "exchange: ", name, " of DeepSpeed's is numbers, and its codes were asked for");
}

}  // namespace weft::exchange::deepspeed
