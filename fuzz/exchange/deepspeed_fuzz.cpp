// Any bytes in the place of one file of a DeepSpeed step that is otherwise in order: what says its tensors, a
// rank's flat buffers of either form, or one tensor of a universal checkpoint. It is read whole, or refused
// with Kind::data.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/exchange/deepspeed/checkpoint.h"
#include "weft/exchange/their_weights.h"

namespace {

namespace fs = std::filesystem;
using weft::exchange::deepspeed::Checkpoint;
using weft::exchange::deepspeed::Tensors;

/// Links to a step's files but for one, which each input stands for.
struct Place {
  weft::exchange::deepspeed::Step step;
  fs::path file;
};

Place place_in(const fs::path& own, const std::string& name, const std::string& file) {
  const fs::path from = fs::path(WEFT_DEEPSPEED) / name;
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    if (!entry.is_regular_file()) continue;
    const fs::path at = fs::relative(entry.path(), from);
    fs::create_directories((own / at).parent_path());
    if (at != file) fs::create_symlink(entry.path(), own / at);
  }
  return {{own, name == "universal"}, own / file};
}

std::vector<Place> places() {
  const fs::path own = fs::temp_directory_path() / ("weft_fuzz_deepspeed_" + std::to_string(::getpid()));
  fs::remove_all(own);
  return {place_in(own / "model", "one", "mp_rank_00_model_states.pt"),
          place_in(own / "groups", "one", "zero_pp_rank_1_mp_rank_00_optim_states.pt"),
          place_in(own / "parts", "three", "zero_pp_rank_0_mp_rank_00_optim_states.pt"),
          place_in(own / "tensor", "universal", "zero/w/exp_avg.pt"),
          place_in(own / "state", "universal", "zero/optimizer_state.pt")};
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
  static const std::vector<Place> all = places();
  if (size == 0) return 0;
  const Place& place = all[data[0] % all.size()];
  std::ofstream(place.file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data) + 1, static_cast<std::streamsize>(size - 1));
  try {
    Checkpoint checkpoint(place.step);
    for (Tensors* one : {&checkpoint.weights(), &checkpoint.first_moments(), &checkpoint.second_moments()})
      read_all(*one);
  } catch (const weft::Error& error) {
    if (error.kind() != weft::Kind::data) std::abort();
  }
  return 0;
}
