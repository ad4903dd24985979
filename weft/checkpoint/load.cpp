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

const Stored& stored_for(const Step& step, const Named& named) {
  const auto found = step.index().tensors.find(named.name);
  if (found == step.index().tensors.end()) {
    fail(Kind::usage, step.directory().string(), ": holds no ", named.name, " among its ",
         step.index().tensors.size(), " tensors");
  }
  const Stored& stored = found->second;
  if (stored.dtype != named.tensor.dtype() || stored.global != named.pieces.front().where.global) {
    fail(Kind::usage, step.directory().string(), ": holds ", named.name, " as ", name(stored.dtype), ' ',
         stored.global, ", and ", name(named.tensor.dtype()), ' ', named.pieces.front().where.global,
         " is wanted");
  }
  return stored;
}

// Into the piece's memory, what the block holds of it.
void copy(std::span<const std::byte> block, const Box& from, const Named& named, const Piece& piece) {
  const auto common = overlap(from, box_of(piece));
  // Boxes without dimensions are one element each, and the same.
  if (!common) return;
  const std::int64_t width = size_of(named.tensor.dtype());
  const std::int64_t start = named.tensor.offset() + piece.at;
  each_run(*common, from, box_of(piece), [&](const Run& run) {
    named.tensor.device().copy_from_host(*named.tensor.storage(), (start + run.to) * width,
                                         block.data() + run.from * width, run.count * width);
  });
}

bool wanted(const Block& block, const Named& named) {
  for (const Piece& piece : named.pieces)
    if (piece.where.local.elements() > 0 && overlap(block.box, box_of(piece))) return true;
  return false;
}

// That the blocks cover the tensor was checked when the step was opened, so every piece is filled.
void fill(Step& step, const Named& named) {
  if (named.pieces.empty()) return;
  const Stored& stored = stored_for(step, named);
  for (const Block& block : stored.blocks) {
    if (!wanted(block, named)) continue;
    const auto bytes = step.read(named.name, stored, block);
    for (const Piece& piece : named.pieces) copy(bytes, block.box, named, piece);
  }
  named.tensor.device().synchronize();  // the mapped bytes must stay until they are copied
}

}  // namespace

std::string load(const std::filesystem::path& directory, std::span<const Named> mine, Communicator& world) {
  std::string facts;
  const auto seen = agree(world, [&] {
    for (const Named& named : mine) check(named);
    Step step(directory);
    for (const Named& named : mine) fill(step, named);
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

Loaded load_latest(const std::filesystem::path& root, std::span<const Named> mine, Communicator& world) {
  std::vector<std::string> notices;
  for (std::int64_t below = no_step;;) {
    const Found found = agree_on_latest(root, below, world);
    notices.insert(notices.end(), found.notices.begin(), found.notices.end());
    if (!found.step) fail(Kind::data, root.string(), ": no checkpoint can be loaded: ", join(notices, "; "));
    try {
      std::string facts = load(found.step->path, mine, world);
      return {*found.step, std::move(facts), std::move(notices)};
    } catch (const Error& error) {
      if (error.kind() != Kind::data) throw;
      notices.push_back(text("step ", found.step->step, " is passed over: ", error.what()));
    }
    below = found.step->step;
  }
}

}  // namespace weft::checkpoint
