// A family of models as a value: everything that the house asks of one, whether it trains, counts or reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/sample.h"
#include "weft/model/config.h"
#include "weft/model/hub.h"
#include "weft/model/parameters.h"
#include "weft/model/partition.h"
#include "weft/nn/batch.h"
#include "weft/nn/context_attention.h"
#include "weft/nn/expert_exchange.h"
#include "weft/nn/layer.h"
#include "weft/nn/sum_rules.h"

namespace weft {

/// How experts see the ranks of a stage.
struct ExpertCircles {
  ExpertRanks ranks;                  // that exchange tokens
  Communicator* sequences = nullptr;  // that hold parts of the same sequences
  Communicator* batch = nullptr;      // and those that hold others
};

/// The circles that layers are cut over.
struct Circles {
  Communicator& tp;
  Between between = Between::whole;
  ContextParallel context = {};
  std::span<const ContextForm> context_layers = {};  // where layers have forms of their own
  Communicator* keys = nullptr;  // neighbours along tp that share a key group; null: each has its own
  ExpertCircles experts = {};
};

/// So many ranks next to each other hold the same key group, where there are fewer groups than ranks.
inline int key_sharers(const ModelConfig& config, int tp) { return std::max(tp / config.groups, 1); }

/// How the layers of a model add.
inline SumRules sums_of(const ModelConfig& config) { return {.exact = config.exact}; }

/// Over how many ranks layers and sequences are to be cut, and how.
struct CutOver {
  int tp = 1, cp = 1;
  bool sequence = false;  // norms and dropout too, along the sequence
  int trading = 1;        // neighbours in a sequence who trade heads, at most
};

struct ExactWidth {
  std::int64_t width = 0;
  std::string_view what;  // "the MLP's width,"
};

/// The samples that a family reads.
struct Samples {
  enum class Of : std::uint8_t {
    documents,     // windows on a stream of documents: the next token is guessed
    hidden_words,  // sentences with some of their words hidden
    hidden_spans,  // the same, where an encoder reads what is left and a decoder what was hidden
  };
  Of of = Of::documents;
  std::int64_t sequence = 0;    // tokens; of the encoder where there are two stacks
  std::int64_t decoder = 0;     // tokens of the decoder
  bool sentence_order = false;  // hidden_words: two parts, whose order is guessed too

  /// What a sample says to the model, both stacks together.
  std::int64_t tokens() const { return sequence + decoder; }
  /// Numbers in a row of such a field.
  std::int64_t length(data::Field field) const;
};

/// What of a sample goes where in a batch.
struct BatchField {
  enum class As : std::uint8_t {
    ids,      // i32 [s, b]
    counts,   // f32 [s, b]
    rows,     // i32 [b, s]
    present,  // i32 [b, s]: 0 where a token is there, -1 where it is padding, which sees and is seen by
              // nobody
    samples,  // of a number a sample: i32 [b]
    counted,  // of the same: f32 [b], 1 where it is not negative
  };
  data::Field from;
  Tensor& (*to)(Batch&);
  As as = As::ids;
  bool may_lack = false;  // the tensor is empty where samples have no such field
};

/// Shapes of the streams between two stages; one without dims stays behind.
struct Carried {
  Shape hidden, memory = {}, biases = {};
  bool of_encoder = false;  // states of an encoder: none travel where its text is known already
};

/// What divides the sum of a loss's terms when it is told.
enum class LossMean : std::uint8_t {
  tokens,        // the counting tokens of the global batch
  microbatches,  // of each microbatch its own counting tokens; then the microbatches
  samples,       // the samples of the global batch, but those of sentence order -1
  passes,        // terms are means over a microbatch already
};

/// What a pass measures: the name under which it is told.
struct NamedLoss {
  std::string name;
  LossMean mean = LossMean::tokens;
  int ahead = 0;  // of tokens so many places beyond the next: those that count are fewer
};

/// What weft generate asks of a family.
enum class Speech : std::uint8_t {
  continues,  // goes on from a text word by word, each seeing those before it
  answers,    // reads a text, and says another one word by word
  guesses,    // says which words may stand where some are hidden
};

struct ModelKind {
  std::string_view name;             // "gpt", as in weft train gpt
  std::string_view usual_tokenizer;  // Megatron's program of this family takes it where none is named
  Speech speech = Speech::continues;

  // ---- from the configuration alone
  /// By number, as layers give them to a pass. The first is the one by which a run is judged.
  std::vector<NamedLoss> (*losses)(const ModelConfig&);
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
  /// What travels into a stage for such a batch.
  Carried (*carried)(const ModelConfig&, const StagePart& into, const Batch&, const CutOver& cut);

  // ---- what it reads
  Samples (*samples)(const ModelConfig&);
  std::span<const BatchField> fields;

  // ---- other programs' models
  HubSpelling hub;
};

}  // namespace weft
