// Who the ranks are that one speaks to.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/mesh/circles.h"
#include "weft/mesh/mesh.h"

namespace weft {

/// Ranks that read other samples, or other parts of them, and add gradients; that share layers; sequences;
/// that hold the next layers; other experts; and all that go through several of these at once.
enum class Partners : std::uint8_t { data, tensor, context, pipeline, experts, several };
constexpr int kinds_of_partners = 6;
std::string_view name(Partners);
Partners partners_along(Axes);

/// Every circle of a mesh that was made in `world`, and those that it will make, add to what `account` gives
/// of their partners.
template <class World, class Account>
void charge(World& world, const ProcessMesh& mesh, const Account& account) {
  for (const Axes along : circles_of(mesh.layout()))
    world.charge(mesh.along(along), account(partners_along(along)));
  world.charge_here(account(Partners::several));
}

}  // namespace weft
