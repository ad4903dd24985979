// A short training of a tiny model under any layout, and what came of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/late_device.h"
#include "tests/support/sanitized.h"
#include "weft/backend/gpus.h"
#include "weft/comm/communicator.h"
#include "weft/model/config.h"
#include "weft/optim/config.h"
#include "weft/train/config.h"
#include "weft/train/disturbance.h"
#include "weft/train/timers.h"

namespace weft::testing {

/// Mistakes that a comparison must see: what it does not see, it does not prove.
enum class Fault {
  none,
  tied_copies_not_added,     // first and last stage each learn from their own gradient
  norm_counts_copies,        // a tied gradient is counted twice
  norm_counts_ranks,         // what tensor-parallel ranks hold whole is counted by each
  weight_gradient_dropped,   // of one matrix of the last layer
  shared_keys_not_added,     // a key that two ranks hold learns from each one's queries
  sequence_parts_not_added,  // norms learn from the tokens of one tensor-parallel rank
  samples_reordered,         // a rank adds its first sample last
  experts_taken_for_copies,  // norms count the experts of the first rank only
  router_terms_not_added,    // routers learn from the tokens of one tensor-parallel rank
  experts_learn_nothing,     // of one layer, on the last rank that holds some
};

/// A layout, and how the global batch is cut into microbatches.
struct Cut {
  ParallelConfig parallel;
  std::int64_t micro_batch = 2;
  int steps = rounds(20);
  bool per_token = false;
  bool reduce_in_bf16 = false, sum_in_bf16 = false;
  Fault fault = Fault::none;
  bool exact = false;
  bool uneven = false;  // samples do not have the same number of tokens that count
  bool parted = false;  // a GPT's samples are of two documents each, which do not see each other
  /// f16 only: where the loss scale begins. It doubles every second step, unless something overflows.
  double loss_scale = 0x1p14;
  OptimizerConfig optimizer = {};
  /// Experts that every token chooses, so that loads are known beforehand; none: as routers have it.
  std::vector<int> always = {};
  /// The processor's arithmetic, but later (tests/support/late_device.h).
  std::optional<Late> late = {};
  /// Opens what computes in the processor's place and keeps its memory to itself: ranks speak through the
  /// host.
  std::unique_ptr<Device> (*open)() = nullptr;
  /// What a device that only counts counts for in the place of that one.
  std::optional<GpuHere> counts_for = {};
  /// How often hosts have waited for such a device up to now.
  std::uint64_t (*waited)() = nullptr;
  /// One rank's: it is told where its steps spend their time.
  StepTimers* timers = nullptr;
  /// A step finds nonsense where the one before left its gradients.
  bool spoils_gradients = false;
  /// Of one rank, how far its weights are off where it begins.
  Disturbance disturbance = {};
  std::int64_t samples = 8;  // of the global batch
};

struct Curve {
  std::vector<double> losses, norms;    // of every step; where a family measures several losses, all of them
  std::vector<double> greatest_scores;  // of every step, where weights follow them
  std::vector<double> evaluations;      // of each loss, at the end
  int skipped = 0;                      // steps that were not applied
  bool copies_agree = true;             // what several ranks or stages hold, after the last step
  std::vector<std::int64_t> most_remembered;  // passes, by rank
  std::vector<std::int64_t> bytes_at_rest;    // weights, gradients and optimizer, by rank
  /// Of a rank's host for its device, in a step and in the last one; where late, or counted.
  int most_waits = 0, last_waits = 0;
  bool operator==(const Curve&) const = default;
};

/// On thread ranks.
Curve train(const ModelConfig& config, const Cut& cut);
/// The same, without what a layout or a schedule may change: memory.
Curve bits_of(const ModelConfig& config, const Cut& cut);
/// One rank's training, of a circle that is as large as the layout: rank 0 gets the losses and norms.
Curve train_in(Communicator& world, const ModelConfig& config, const Cut& cut);
int ranks_of(const Cut& cut);
/// Every kind of cut by itself and in products, eight ranks at most but for one.
std::vector<Cut> usual_cuts();

/// "" where two steps and an evaluation make every rank hold, of every use of memory, now and at most, just
/// what the device says that only counts; else the first difference.
std::string memory_difference(const ModelConfig& config, const Cut& cut);

/// What every rank says of a step in which this weight is infinite wherever it is held.
std::vector<std::string> searched(const ModelConfig& config, const Cut& cut, const std::string& weight);

/// How far two curves may part: losses by so much, norms by such a share of themselves.
struct Rounding {
  double loss = 2e-6, norm = 1e-4;
};
/// In f32, sums over a cut contraction, over ranks and over microbatches are rounded in another order: in 56
/// random layouts of five steps and 36 of twenty, losses of about 3.4 parted by up to 1.7e-7 and norms by
/// 1.1e-6 of themselves; the norm of one of 2,000, of six layers with norms of heads, by 3.1e-5.
/// In bf16 every product is rounded to eight bits: in 67 random layouts five steps parted by up to 5.5e-3 in
/// the loss and 2.6 % in the norm; in f16, to eleven bits, in 54 of them 6.1e-4 and 0.13 %. Gradients that
/// travel as bf16 have norms that are off by at most 2^-9 (1 + sum over ranks of |g_r| / |g|), and parted in
/// 23 layouts of f32 by up to 9e-5 in the loss and 0.02 % in the norm.
/// In exact mode nothing parts.
Rounding rounding_of(const ModelConfig& config, const Cut& cut);

/// "" where two curves are the same but for that, else the first difference that is more. What curves may
/// part by besides is said for each number, or for none.
std::string difference(const Curve& a, const Curve& b, const Rounding& rounding = {},
                       const Curve& besides = {});

/// How far the curve of one rank may move, up to each step, where its numbers are rounded otherwise: twice
/// what it does four times when the weights are disturbed by less than their rounding is, and gradients
/// rounded where the layout rounds them.
///
/// Some models take hold of any rounding: of 6,000 random layouts eleven parted by more than the rest, all of
/// layers that remember or state spaces. Ten did so by no more than this; one, in f16, skipped another step.
Curve moved_by_rounding(const ModelConfig& config, const Cut& cut, const Cut& alone);

/// "gpt2", "llama", "latent", "mixture" (of experts), "bert" or "t5" with so many layers, in both stacks
/// together, dropout on.
ModelConfig shape_of(const std::string& name, int layers = 2);

/// "tp2_pp2_dp2_sp_zb-h1_v2_b1", without what is 1 or off.
std::string name_of(const Cut& cut);

}  // namespace weft::testing
