// Limits of the GPU's kernels as settings, and GPUs as places for ranks.
#include "weft/cli/gpu_run.h"

#include <algorithm>

#include "weft/backend/cuda/space.h"
#include "weft/backend/gpus.h"
#include "weft/backend/open.h"
#include "weft/base/error.h"
#include "weft/cli/dry_run_plan.h"

namespace weft::cli {
namespace {

void must_fit_heads(std::int64_t channels, std::string_view field) {
  if (channels > widest_gpu_head)
    fail(Kind::usage, field, " ", channels, ": attention takes heads of ", widest_gpu_head,
         " at most on a GPU; take {run.device=cpu}");
}

void widths_of_heads(const ModelConfig& m) {
  if (!m.latent.on) return must_fit_heads(m.channels, "{model.channels}");
  must_fit_heads(m.latent.plain_channels + m.latent.turned_channels,
                 "{model.latent.plain_channels} + {model.latent.turned_channels} =");
  must_fit_heads(m.latent.value_channels, "{model.latent.value_channels}");
}

/// Of the GPUs that ranks of this process compute on, each with those of the machine that share it.
std::vector<Room> rooms_of_gpus(const TrainConfig& c, const RanksHere& all, const Launched& launched) {
  const std::string& device = c.run.device;
  const int count = gpus_here().count(), every = device == "cuda" ? count : 1;
  std::vector<Room> rooms;
  for (int place = 0; place < std::min(all.count(), every); ++place) {
    const int gpu = gpu_of_rank(device, place, count);
    const bool ours = !launched.processes() || every == 1 || launched.local_rank % every == place;
    if (!ours || gpu >= count) continue;
    Room room{.ranks = all, .free = {.bytes = free_on_gpu(gpu), .by = "cuda:" + std::to_string(gpu)}};
    room.ranks.first = all.first + place;
    room.ranks.every = every;
    room.ranks.gpu = room.free.by;
    rooms.push_back(std::move(room));
  }
  return rooms;
}

}  // namespace

void must_carry(std::string_view device, const ModelConfig& m) {
  if (names_gpu(device)) widths_of_heads(m);
}

void must_carry(const TrainConfig& c) {
  if (names_gpu(c.run.device) && c.optimizer.offload.weights)
    fail(Kind::usage,
         "{optimizer.offload.weights}: layers of a GPU read weights in its memory; leave it out, or take "
         "{run.device=cpu}");
  must_carry(c.run.device, c.model);
}

void must_read(std::string_view device, const ModelConfig& m) {
  must_carry(device, m);
  must_be_here(device);
}

void must_be_here(std::string_view device) {
  if (!names_gpu(device)) return;
  const GpusHere here = gpus_here();
  if (!here.missing.empty()) fail(Kind::usage, "{run.device} ", device, ": ", here.missing, "; use cpu");
  if (gpu_of_rank(device, 0, here.count()) >= here.count())
    fail(Kind::usage, "{run.device} ", device, ": this machine has ", here.count(), " of them");
}

std::string why_no_warpgroups(std::string_view device, const ModelConfig& m) {
  if (!names_gpu(device)) return "a processor has none";
  const std::vector<GpuHere> here = gpus_here().all;
  if (!here.empty() && std::ranges::none_of(here, &GpuHere::warpgroups))
    return "GPUs of compute capability 9.0 have them, by a program that was compiled for sm_90a";
  if (m.precision == Precision::f32) return "what is computed in fp32 goes by warps";
  if (m.exact || m.experts.count > 0) return "";
  const std::int64_t keys = m.latent.on ? m.latent.plain_channels + m.latent.turned_channels : m.channels;
  for (const std::int64_t channels : {keys, value_channels(m)})
    if (channels > widest_warpgroup_head || channels % 8 != 0)
      return text("attention of heads of ", channels, " goes by warps");
  return "";
}

std::string why_blocks_are_widened(std::string_view device, const ModelConfig& m) {
  const bool wide = m.fp8.recipe == Fp8Recipe::blockwise;
  if (!names_gpu(device) || !m.fp8.on() || (!wide && m.fp8.recipe != Fp8Recipe::mxfp8)) return "";
  const std::vector<GpuHere> here = gpus_here().all;
  const F8Blocks blocks = wide ? F8Blocks::lines_of_128 : F8Blocks::lines_of_32;
  const auto knows = [&](const GpuHere& gpu) { return cuda::knows_blocks(blocks, gpu.major); };
  if (here.empty() || std::ranges::all_of(here, knows)) return "";
  return text("GPUs of compute capability ", wide ? "9.0" : "10",
              " multiply under such scales; this one has ", here.front().major, ".", here.front().minor,
              ", and multiplies what codes stand for, in bf16");
}

std::optional<GpuHere> counted_gpu(std::string_view device) {
  if (!names_gpu(device)) return std::nullopt;
  const std::vector<GpuHere> here = gpus_here().all;
  const auto first = std::size_t(gpu_of_rank(device, 0, int(here.size())));
  return first < here.size() ? here[first] : gpu_elsewhere;
}

// Where no GPU is here, each rank is taken to have one of its own where it will run.
SpokenBy spoken_by(const TrainConfig& config, const Launched& launched) {
  if (!names_gpu(config.run.device)) return SpokenBy::hosts;
  const int gpus = gpus_here().count();
  const bool shared =
      config.run.device != "cuda" || (gpus > 0 && ranks_here(config.parallel, launched).count() > gpus);
  if (shared) return SpokenBy::hosts_for_gpus;
  return config.model.exact ? SpokenBy::gpus_as_trees : SpokenBy::gpus;
}

std::vector<Room> rooms_here(const TrainConfig& config, const Launched& launched) {
  const RanksHere all = ranks_here(config.parallel, launched);
  if (names_gpu(config.run.device)) return rooms_of_gpus(config, all, launched);
  return {{.ranks = all, .free = free_here(config)}};
}

}  // namespace weft::cli
