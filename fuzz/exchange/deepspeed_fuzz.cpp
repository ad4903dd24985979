// Any bytes in the place of one file of a DeepSpeed step that is otherwise in order: what says its tensors, a
// rank's flat buffers of either form, or one tensor of a universal checkpoint. It is read whole, or refused
// with Kind::data.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz/exchange/place.h"
#include "weft/base/error.h"
#include "weft/exchange/deepspeed/checkpoint.h"
#include "weft/exchange/their_weights.h"

namespace {

namespace fs = std::filesystem;
using weft::exchange::deepspeed::Checkpoint;
using weft::exchange::deepspeed::Tensors;

using weft::exchange::Place;

/// Of a small step, with one file left for the input.
Place place_of(const fs::path& own, const std::string& name, const std::string& file) {
  return weft::exchange::place_in(own, fs::path(WEFT_DEEPSPEED) / name, file);
}

struct Case {
  Place place;
  bool universal = false;
};

std::vector<Case> cases() {
  const fs::path own = weft::exchange::own_folder("weft_fuzz_deepspeed");
  return {{place_of(own / "model", "one", "mp_rank_00_model_states.pt")},
          {place_of(own / "groups", "one", "zero_pp_rank_1_mp_rank_00_optim_states.pt")},
          {place_of(own / "parts", "three", "zero_pp_rank_0_mp_rank_00_optim_states.pt")},
          {place_of(own / "tensor", "universal", "zero/w/exp_avg.pt"), true},
          {place_of(own / "state", "universal", "zero/optimizer_state.pt"), true}};
}

void read_all(const Tensors& tensors) {
  for (const std::string& name : tensors.names()) {
    const weft::checkpoint::Entry& entry = *tensors.find(name);
    if (!weft::is_float(entry.dtype)) continue;
    std::vector<float> numbers(static_cast<std::size_t>(entry.shape.elements()));
    tensors.read(name, {0, 1, std::ssize(numbers)}, numbers.data());
    tensors.read(name, {0, 2, (std::ssize(numbers) + 1) / 2}, numbers.data());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Case> all = cases();
  if (size == 0) return 0;
  const Case& one = all[data[0] % all.size()];
  one.place.put(data + 1, size - 1);
  try {
    Checkpoint checkpoint({one.place.directory, one.universal});
    for (Tensors* part : {&checkpoint.weights(), &checkpoint.first_moments(), &checkpoint.second_moments()})
      read_all(*part);
  } catch (const weft::Error& error) {
    if (error.kind() != weft::Kind::data) std::abort();
  }
  return 0;
}
