// LatentConfig: attention whose keys and values are made of a small latent vector of each token.
#pragma once

#include <cstdint>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"

namespace weft {

/// A token is pressed into a latent of `rank` numbers, of which every head makes a key and a value of its
/// own, and one key that turns with its position, which all heads share; queries may be made of a latent too.
/// The norms of latents are there where norms of queries and keys are asked for.
struct LatentConfig {
  bool on = false;
  std::int64_t query_rank = 0;  // 0: queries are made of the token itself
  std::int64_t rank = 32;
  std::int64_t plain_channels = 128;  // of a head's queries and keys, that do not turn
  std::int64_t turned_channels = 64;  // and that do
  std::int64_t value_channels = 128;
  double norm_epsilon = 0.0;  // of norms of latents; 0: that of the others
};

template <class Visitor>
void describe(Visitor& v, LatentConfig& c) {
  v("on", c.on, OnResume::model, "make keys and values of a latent vector of each token");
  v("query_rank", c.query_rank, OnResume::model,
    "latent attention: width of what queries are made of (0: the token itself)", legal::size_or_none);
  v("rank", c.rank, OnResume::model, "latent attention: width of what keys and values are made of",
    legal::size);
  v("plain_channels", c.plain_channels, OnResume::model,
    "latent attention: channels of a head's queries and keys that do not turn", legal::size);
  v("turned_channels", c.turned_channels, OnResume::model,
    "latent attention: channels of a head's queries, and of the key that heads share, that turn",
    legal::size);
  v("value_channels", c.value_channels, OnResume::model, "latent attention: channels of a head's values",
    legal::size);
  v("norm_epsilon", c.norm_epsilon, OnResume::model,
    "latent attention: added to the mean square in norms of latents (0: as in other norms)",
    legal::not_negative);
}

}  // namespace weft
