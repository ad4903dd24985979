// Loading: any layout from any layout, each rank the boxes it holds and nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "weft/checkpoint/find.h"
#include "weft/checkpoint/named.h"
#include "weft/comm/communicator.h"

namespace weft::checkpoint {

class OpenStep;

/// Whether a float may be stored in another width than is wanted: it is then rounded to the nearest, or
/// widened.
enum class Types : std::uint8_t { must_agree, may_differ };

/// Every rank of `world` calls it. Fills every piece, of every replica, from whatever boxes the files hold,
/// and returns the facts. The hash of each block is compared before it is used. Throws on every rank with the
/// failure of the first that had one: Kind::data for damage, Kind::usage where the checkpoint holds other
/// tensors than are wanted; the tensors then hold what they held, or part of the checkpoint.
std::string load(const std::filesystem::path& directory, std::span<const Named> mine, Communicator& world,
                 Types types = Types::must_agree);

/// The same for one tensor of a step that this rank has open, and no other rank is asked.
void load_one(OpenStep& step, const Named& named);

}  // namespace weft::checkpoint
