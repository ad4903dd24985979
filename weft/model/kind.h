// A family of models as a value: everything that the house asks of one, whether it trains, counts or reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/open.h"
#include "weft/model/config.h"
#include "weft/model/hub.h"
#include "weft/model/parameters.h"
#include "weft/model/partition.h"
#include "weft/nn/batch.h"
#include "weft/nn/context_attention.h"
#include "weft/nn/layer.h"
#include "weft/nn/sum_rules.h"

namespace weft {

/// The circles that layers are cut over.
struct Circles {
  Communicator& tp;
  Between between = Between::whole;
  ContextParallel context = {};
};

/// How the layers of a model add.
inline SumRules sums_of(const ModelConfig& config) { return {.exact = config.exact}; }

/// Over how many ranks layers and sequences are to be cut, and how.
struct CutOver {
  int tp = 1, cp = 1;
  bool sequence = false;  // norms and dropout too, along the sequence
  ContextForm context = ContextForm::ring;
};

struct ExactWidth {
  std::int64_t width = 0;
  std::string_view what;  // "the MLP's width,"
};

/// What of a sample goes where in a batch.
struct BatchField {
  enum class As : std::uint8_t { ids, counts, rows };  // i32 [s, b], f32 [s, b], i32 [b, s]
  data::Field from;
  Tensor& (*to)(Batch&);
  As as = As::ids;
  bool may_lack = false;  // the tensor is empty where samples have no such field
};

/// Shapes of the streams between two stages; one without dims stays behind.
struct Carried {
  Shape hidden, memory = {};
};

struct ModelKind {
  std::string_view name;  // "gpt", as in weft train gpt
  /// What a pass measures, by the names under which it is told.
  std::span<const std::string_view> losses;

  // ---- from the configuration alone
  /// Fills in what follows from other fields, and refuses shapes that no model has.
  void (*complete)(ModelConfig&);
  ParameterList (*parameters)(const ModelConfig&);
  /// Floating-point operations of training on one sequence (model/count.h).
  double (*training_flops)(const ModelConfig&, std::int64_t sequence);
  /// Bytes that a microbatch's activations may take at most (model/count.h).
  double (*activation_bound)(const ModelConfig&, std::int64_t micro_batch);

  // ---- cut over ranks
  /// One part a pipeline stage, in the order that data flow through them.
  std::vector<StagePart> (*cut)(const ModelConfig&, const StageCut&);
  /// Refuses what its layers and sequences cannot be cut into.
  void (*check_cut)(const ModelConfig&, const CutOver&);
  /// What exact mode cuts into eighths, and must be able to.
  std::vector<ExactWidth> (*exact_widths)(const ModelConfig&);
  /// What this family does in exact mode instead of what was asked for; empty where it does that.
  std::string (*exact_notice)(const ModelConfig&, const CutOver&);
  /// The layers of one stage, without memory for their weights: whoever owns the weights binds it.
  Stage (*build)(const ModelConfig&, const StagePart&, const Circles&, Device&);
  /// What travels into a stage for such a batch, where what flows between layers is cut into so many parts.
  Carried (*carried)(const ModelConfig&, const StagePart& into, const Batch&, int parts);

  // ---- what it reads
  data::Datasets (*open)(const data::DataRequest&);
  std::span<const BatchField> fields;

  // ---- other programs' models
  HubSpelling hub;
};

}  // namespace weft
