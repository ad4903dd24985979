// Every wanted box is the sum of its overlaps with stored blocks, copied run by run from the mapped file.
#include "weft/checkpoint/load.h"

#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/checkpoint/agree.h"
#include "weft/checkpoint/step.h"

namespace weft::checkpoint {
namespace {

bool same_or_float(Dtype stored, Dtype wanted, Types types) {
  return stored == wanted || (types == Types::may_differ && is_float(stored) && is_float(wanted));
}

const Stored& stored_for(const OpenStep& step, const Named& named, Types types) {
  const auto found = step.index().tensors.find(named.name);
  if (found == step.index().tensors.end()) {
    fail(Kind::usage, step.directory().string(), ": holds no ", named.name, " among its ",
         step.index().tensors.size(), " tensors");
  }
  const Stored& stored = found->second;
  if (!same_or_float(stored.dtype, named.tensor.dtype(), types) ||
      stored.global != named.pieces.front().where.global) {
    fail(Kind::usage, step.directory().string(), ": holds ", named.name, " as ", name(stored.dtype), ' ',
         stored.global, ", and ", name(named.tensor.dtype()), ' ', named.pieces.front().where.global,
         " is wanted");
  }
  return stored;
}

// The same numbers in another type.
std::vector<std::byte> converted(std::span<const std::byte> from, Dtype stored, Dtype wanted) {
  std::vector<std::byte> out(from.size() / std::size_t(size_of(stored)) * std::size_t(size_of(wanted)));
  visit_float(stored, [&]<class From>() {
    visit_float(wanted, [&]<class To>() {
      for (std::size_t i = 0; i < from.size() / sizeof(From); ++i) {
        From read;
        std::memcpy(&read, from.data() + i * sizeof(From), sizeof read);
        const auto number = static_cast<To>(static_cast<float>(read));
        std::memcpy(out.data() + i * sizeof(To), &number, sizeof number);
      }
    });
  });
  return out;
}

// Into the piece's memory, what the block holds of it. The block must stay until the device has it.
void copy(std::span<const std::byte> block, const Box& from, const Named& named, const Piece& piece) {
  const auto common = overlap(from, box_of(piece));
  // Boxes without dimensions are one element each, and the same.
  if (!common) return;
  const std::int64_t width = size_of(named.tensor.dtype());
  const std::int64_t start = named.tensor.offset() + piece.at;
  each_run(*common, from, box_of(piece), [&](const Run& run) {
    (void)named.tensor.device().copy_from_host(*named.tensor.storage(), (start + run.to) * width,
                                               block.data() + run.from * width, run.count * width);
  });
}

bool wanted(const Block& block, const Named& named) {
  for (const Piece& piece : named.pieces)
    if (piece.where.local.elements() > 0 && overlap(block.box, box_of(piece))) return true;
  return false;
}

// That the blocks cover the tensor was checked when the step was opened, so every piece is filled.
void fill(OpenStep& step, const Named& named, Types types) {
  if (named.pieces.empty()) return;
  const Stored& stored = stored_for(step, named, types);
  const Dtype dtype = named.tensor.dtype();
  for (const Block& block : stored.blocks) {
    if (!wanted(block, named)) continue;
    const auto bytes = step.read(named.name, stored, block);
    const auto other =
        stored.dtype == dtype ? std::vector<std::byte>() : converted(bytes, stored.dtype, dtype);
    for (const Piece& piece : named.pieces)
      copy(stored.dtype == dtype ? bytes : std::span<const std::byte>(other), block.box, named, piece);
    named.tensor.device().synchronize();
  }
}

}  // namespace

std::string load(const std::filesystem::path& directory, std::span<const Named> mine, Communicator& world,
                 Types types) {
  std::string facts;
  const auto seen = agree(world, [&] {
    for (const Named& named : mine) check(named);
    OpenStep step(directory);
    if (world.rank() == 0) step.check_attached();
    for (const Named& named : mine) fill(step, named, types);
    facts = step.facts();
    return step.index_hash().hex();
  });
  for (std::size_t r = 1; r < seen.size(); ++r) {
    if (seen[r] != seen[0]) {
      fail(Kind::data, directory.string(), ": ranks 0 and ", r,
           " read different indices; is the directory shared by all machines");
    }
  }
  return facts;
}

void load_one(OpenStep& step, const Named& named) {
  check(named);
  fill(step, named, Types::must_agree);
}

}  // namespace weft::checkpoint
