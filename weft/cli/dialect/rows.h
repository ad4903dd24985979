// A row of the dialect: one of Megatron's flags, and what weft does about it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/fields.h"
#include "weft/base/flags.h"

namespace weft::cli::dialect {

/// honored: it sets fields. no_effect: nothing here depends on it. refused: weft cannot do it yet.
/// gone: Megatron itself dropped it. foreign: it belongs to another program than pretraining.
enum class Treatment : std::uint8_t { honored, no_effect, refused, gone, foreign };
std::string_view name(Treatment);

/// What one word after the flag does. An empty `word` stands for any; an empty `value` for the words
/// themselves; no path and no refusal: the word is harmless.
struct Effect {
  std::string_view word = {}, path = {}, value = {}, refusal = {};
};

/// For the few flags that need arithmetic. Runs after all plain rows of the same source, in the table's
/// order.
using Parse = void (*)(Fields&, std::span<const std::string> words, Origin who);

struct Row {
  std::string_view flag;
  Arity arity = Arity::one;
  Treatment treatment = Treatment::honored;
  std::vector<Effect> effects;
  std::string_view
      text;  // help in place of the field's, the reason, what is missing, or what to write instead
  Parse parse = nullptr;
};

/// The word is one of the row's, and sets nothing: what it asks for is done anyway.
bool asks_for_nothing(const Row& row, std::string_view word);

struct Group {
  std::string_view title;
  std::vector<Row> rows;
};

/// The flag's words become the field's.
Row value(std::string_view flag, std::string_view path, std::string_view help = {});
Row list(std::string_view flag, Arity arity, std::string_view path, std::string_view help = {});
/// A switch that sets fields to fixed words.
Row on(std::string_view flag, std::vector<Effect> effects, std::string_view help = {});
/// What happens depends on the word.
Row pick(std::string_view flag, Arity arity, std::vector<Effect> effects);
Row parsed(std::string_view flag, Arity arity, std::string_view path, Parse parse,
           std::string_view help = {});
Row no_effect(std::string_view flag, Arity arity, std::string_view why);
Row cannot(std::string_view flag, Arity arity, std::string_view what);
Row gone(std::string_view flag, std::string_view instead);
Group foreign(std::string_view title, std::string_view why, std::initializer_list<Flag> flags);

Group model();
Group positions();
Group remember();
Group hybrid();
Group vocabulary();
Group model_refused();
Group moe();
Group megatron_deepspeed();
Group parallel();
Group communication();
Group optimizer();
Group loop();
Group precision();
Group recompute();
Group data();
Group checkpoint();
Group logging();
Group surroundings();
Group older();
Group generation();
Group reinforcement();
Group multimodal();
Group retrieval();
Group tools();
/// All of them, in the order help shows them.
std::vector<Group> table();

void no_learned_positions(Fields&, std::span<const std::string>, Origin);
void linear_scaling(Fields&, std::span<const std::string>, Origin);
void latent_attention(Fields&, std::span<const std::string>, Origin);
void llama3_scaling(Fields&, std::span<const std::string>, Origin);
void exact_gelu(Fields&, std::span<const std::string>, Origin);
void query_groups(Fields&, std::span<const std::string>, Origin);
void qkv_bias(Fields&, std::span<const std::string>, Origin);
void window(Fields&, std::span<const std::string>, Origin);
void window_layers(Fields&, std::span<const std::string>, Origin);
void unturned_layers(Fields&, std::span<const std::string>, Origin);
void delta_layers(Fields&, std::span<const std::string>, Origin);
void expert_count(Fields&, std::span<const std::string>, Origin);
void expert_interval(Fields&, std::span<const std::string>, Origin);
void all_tokens(Fields&, std::span<const std::string>, Origin);
void expert_layers(Fields&, std::span<const std::string>, Origin);
void batch_steps(Fields&, std::span<const std::string>, Origin);
void computes_on(Fields&, std::span<const std::string>, Origin);
void context_forms(Fields&, std::span<const std::string>, Origin);
void megatron_fsdp(Fields&, std::span<const std::string>, Origin);
void distributed_optimizer(Fields&, std::span<const std::string>, Origin);
void rolling_saves(Fields&, std::span<const std::string>, Origin);
void recompute_modules(Fields&, std::span<const std::string>, Origin);
void deepspeed(Fields&, std::span<const std::string>, Origin);

/// "12", or a Python list of 0 and 1 such as "([0]*3+[1]*58)", as a list of numbers.
std::vector<int> read_pattern(std::string_view from);

}  // namespace weft::cli::dialect
