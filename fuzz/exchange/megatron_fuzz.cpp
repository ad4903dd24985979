// Any bytes in the place of one file of a Megatron checkpoint that is otherwise in order: the index of a
// sharded one, with flat buffers or without, what its ranks have in common, a rank's file, or its flat
// buffers. It is read whole, with what its optimizer keeps, or refused with Kind::data.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz/exchange/place.h"
#include "weft/base/error.h"
#include "weft/exchange/their_model.h"

namespace {

namespace fs = std::filesystem;

using weft::exchange::Place;

/// Of a checkpoint of Megatron's, with one file left for the input.
Place place_of(const fs::path& own, const std::string& name, const std::string& file) {
  return weft::exchange::place_in(own / name, fs::path(WEFT_MEGATRON) / name / "iter_0000004", file);
}

std::vector<Place> places() {
  const fs::path own = weft::exchange::own_folder("weft_fuzz_megatron");
  return {place_of(own / "index", "gpt2_tp2", ".metadata"),
          place_of(own / "common", "moe_ep2", "common.pt"),
          place_of(own / "rank", "gpt2_tp2_pp2_legacy", "mp_rank_00_000/model_optim_rng.pt"),
          place_of(own / "rows", "moe_ep2_distopt", ".metadata"),
          place_of(own / "joined", "llama_tp2_pp2_distopt_legacy", "mp_rank_00_000/distrib_optim.pt"),
          place_of(own / "shared", "moe_ep2_legacy", "mp_rank_00_001/model_optim_rng.pt"),
          place_of(own / "stacks", "t5_distopt", "common.pt"),
          place_of(own / "encoder", "bert_distopt", ".metadata"),
          place_of(own / "further", "further_distopt", "mp_rank_00/model_optim_rng.pt")};
}

void read_all(const weft::exchange::TheirWeights& weights) {
  std::vector<float> row;
  for (const weft::Recipe& recipe : weights.all()) {
    row.resize(static_cast<std::size_t>(recipe.columns()));
    weights.read(recipe, 0, row);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Place> all = places();
  if (size == 0) return 0;
  const Place& place = all[data[0] % all.size()];
  place.put(data + 1, size - 1);
  try {
    const weft::exchange::TheirModel theirs = weft::exchange::read_theirs(place.directory);
    if (theirs.model.layers > 64 || theirs.model.decoder_layers > 64 || theirs.model.experts.count > 64)
      return 0;
    read_all(*theirs.open());
    if (!theirs.run || (theirs.run->settle && !theirs.run->settle().empty())) return 0;
    read_all(*theirs.open());
    for (const auto& states : theirs.run->open_states()) read_all(*states);
  } catch (const weft::Error& error) {
    if (error.kind() != weft::Kind::data) std::abort();
  }
  return 0;
}
