// Reading: what is missing has the default of its family, what weft cannot compute is refused by name.
#include "weft/exchange/hub_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/step.h"
#include "weft/checkpoint/strict_json.h"

namespace weft::exchange {
namespace {

using nlohmann::json;

// Of sizes, so that no hostile file makes a list that memory cannot hold.
constexpr std::int64_t most_layers = 10'000;
constexpr std::int64_t most_heads = 1 << 16;
constexpr std::int64_t widest = 1 << 24;
constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;

// Settings of training, of other tasks and of programs that run models: they change no logit.
constexpr std::string_view harmless[] = {"_name_or_path",
                                         "architectures",
                                         "auto_map",
                                         "bos_token_id",
                                         "chunk_size_feed_forward",
                                         "dtype",
                                         "embd_pdrop",
                                         "eos_token_id",
                                         "finetuning_task",
                                         "gradient_checkpointing",
                                         "id2label",
                                         "initializer_range",
                                         "is_decoder",
                                         "is_encoder_decoder",
                                         "keys_to_ignore_at_inference",
                                         "label2id",
                                         "max_window_layers",
                                         "n_ctx",
                                         "output_attentions",
                                         "output_hidden_states",
                                         "output_past",
                                         "pad_token_id",
                                         "prefix",
                                         "pretraining_tp",
                                         "problem_type",
                                         "reorder_and_upcast_attn",
                                         "return_dict",
                                         "rope_interleaved",
                                         "summary_activation",
                                         "summary_first_dropout",
                                         "summary_proj_to_labels",
                                         "summary_type",
                                         "summary_use_proj",
                                         "task_specific_params",
                                         "torch_dtype",
                                         "transformers_version",
                                         "use_cache",
                                         "use_mrope",
                                         "_attn_implementation_autoset",
                                         "unsloth_fixed",
                                         "unsloth_version"};

// One JSON object, and which of its settings were asked for.
class Settings {
 public:
  Settings(const json& object, std::string who) : object_(object), who_(std::move(who)) {}

  const std::string& who() const { return who_; }
  // Null where it is not there, or is null.
  const json* find(const char* name) {
    asked_.insert(name);
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] void refuse(const char* name, std::string_view expected) {
    const json* value = find(name);
    fail(Kind::data, who_, ": \"", name, "\" is ", value ? value->dump().substr(0, 80) : "missing", ", ",
         expected);
  }
  std::int64_t size(const char* name, std::int64_t greatest = most) {
    const json* value = find(name);
    if (value == nullptr || !value->is_number_unsigned() || value->get<std::uint64_t>() < 1 ||
        value->get<std::uint64_t>() > std::uint64_t(greatest))
      refuse(name, text("expected a whole number from 1 to ", greatest));
    return value->get<std::int64_t>();
  }
  std::int64_t size_or(const char* name, std::int64_t otherwise, std::int64_t greatest = most) {
    return find(name) == nullptr ? otherwise : size(name, greatest);
  }
  double number(const char* name, double otherwise) {
    const json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || !std::isfinite(value->get<double>())) refuse(name, "expected a number");
    return value->get<double>();
  }
  double positive(const char* name, double otherwise) {
    const double value = number(name, otherwise);
    if (!(value > 0)) refuse(name, "expected a number above 0");
    return value;
  }
  double fraction(const char* name, double otherwise) {
    const double value = number(name, otherwise);
    if (!(value >= 0 && value < 1)) refuse(name, "expected a probability below 1");
    return value;
  }
  bool yes(const char* name, bool otherwise) {
    const json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(name, "expected true or false");
    return value->get<bool>();
  }
  std::string word(const char* name, const std::string& otherwise) {
    const json* value = find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) refuse(name, "expected a text");
    return value->get<std::string>();
  }
  // A setting that weft computes in one way only.
  void must_be(const char* name, const json& only) {
    const json* value = find(name);
    if (value != nullptr && *value != only) refuse(name, text("weft can only compute ", only.dump()));
  }
  void must_be_absent(const char* name) {
    if (find(name) != nullptr) refuse(name, "which weft cannot compute");
  }
  std::vector<std::string> unasked() const {
    std::vector<std::string> out;
    for (const auto& [name, value] : object_.items())
      if (!asked_.contains(name) && std::ranges::find(harmless, name) == std::end(harmless))
        out.push_back(name);
    return out;
  }

 private:
  const json& object_;
  std::string who_;
  std::set<std::string> asked_;
};

Activation activation_of(const std::string& word, Settings& settings, const char* name) {
  if (word == "silu" || word == "swish") return Activation::silu;
  if (word == "gelu_new" || word == "gelu_pytorch_tanh" || word == "gelu_fast") return Activation::gelu;
  if (word == "gelu") return Activation::gelu_erf;
  if (word == "quick_gelu") return Activation::quick_gelu;
  if (word == "relu") return Activation::relu;
  if (word == "relu2") return Activation::squared_relu;
  settings.refuse(name, "which is no activation that weft knows");
}

void read_yarn(RotaryConfig& rotary, Settings& s) {
  rotary.scaling = RotaryScaling::yarn;
  rotary.factor = s.positive("factor", 1);
  rotary.beta_fast = s.positive("beta_fast", 32);
  rotary.beta_slow = s.positive("beta_slow", 1);
  s.must_be("truncate", true);
  if (s.find("mscale") != nullptr && s.find("mscale_all_dim") != nullptr) {
    rotary.mscale = s.positive("mscale", 1);
    rotary.mscale_all = s.positive("mscale_all_dim", 0);
  }
  const double usual = rotary.factor <= 1 ? 1 : 0.1 * std::log(rotary.factor) + 1;
  if (std::abs(s.number("attention_factor", usual) - usual) > 1e-6)
    s.refuse("attention_factor", text("weft can only compute ", usual, " with this factor"));
}

// "rope_scaling" until transformers 4, "rope_parameters" since 5; the base stands beside or inside.
void read_rotary(ModelConfig& model, Settings& outer) {
  RotaryConfig& rotary = model.rotary;
  model.positions = Positions::rotary;
  rotary.base = outer.positive("rope_theta", 10000);
  outer.must_be("partial_rotary_factor", 1.0);
  const json* scaling = outer.find("rope_parameters");
  if (scaling == nullptr) scaling = outer.find("rope_scaling");
  if (scaling == nullptr) return;
  const std::string who = outer.who() + ": rope scaling";
  if (!scaling->is_object()) fail(Kind::data, who, ": ", scaling->type_name(), ", expected an object");
  Settings s(*scaling, who);
  rotary.base = s.positive("rope_theta", rotary.base);
  s.must_be("partial_rotary_factor", 1.0);
  const std::string kind = s.word("rope_type", s.word("type", "default"));
  rotary.original_positions =
      s.size_or("original_max_position_embeddings", outer.size("max_position_embeddings"));
  if (kind == "linear") {
    rotary.scaling = RotaryScaling::linear;
    rotary.factor = s.positive("factor", 1);
  } else if (kind == "llama3") {
    rotary.scaling = RotaryScaling::llama3;
    rotary.factor = s.positive("factor", 8);
    rotary.low = s.positive("low_freq_factor", 1);
    rotary.high = s.positive("high_freq_factor", 4);
    if (!(rotary.low < rotary.high)) s.refuse("high_freq_factor", "expected more than low_freq_factor");
  } else if (kind == "yarn") {
    read_yarn(rotary, s);
  } else if (kind != "default") {
    s.refuse(s.find("rope_type") != nullptr ? "rope_type" : "type",
             "weft knows default, linear, llama3 and yarn");
  }
  if (const auto other = s.unasked(); !other.empty())
    fail(Kind::data, who, ": \"", other.front(), "\" is a setting that weft does not know");
}

// Which layers look through the window: Qwen's first ones see everything, or a list says it.
void read_window(ModelConfig& model, Family family, Settings& s) {
  const bool can = family == Family::mistral || family == Family::qwen2 || family == Family::qwen3;
  const json* types = s.find("layer_types");
  const bool on = family == Family::mistral || s.yes("use_sliding_window", false);
  const std::int64_t window = s.size_or("sliding_window", family == Family::mistral ? 0 : 4096);
  const std::int64_t full = s.size_or("max_window_layers", 28);
  if (!can || !on || window == 0) {
    if (types != nullptr)
      for (const json& type : *types)
        if (type != "full_attention") s.refuse("layer_types", "but no window is switched on");
    return;
  }
  model.window = window;
  if (types == nullptr) {
    if (family == Family::mistral) return;
    for (int layer = 0; layer < model.layers; ++layer) model.window_layers.push_back(layer >= full);
    return;
  }
  if (!types->is_array() || std::ssize(*types) != model.layers)
    s.refuse("layer_types", text("expected a list of ", model.layers, " words"));
  for (const json& type : *types) {
    if (type != "sliding_attention" && type != "full_attention")
      s.refuse("layer_types", "weft knows full_attention and sliding_attention");
    model.window_layers.push_back(type == "sliding_attention");
  }
}

void read_gpt2(ModelConfig& m, Settings& s) {
  m.layers = int(s.size("n_layer", most_layers));
  m.hidden = s.size("n_embd", widest);
  m.heads = int(s.size("n_head", most_heads));
  m.ffn_hidden = s.size_or("n_inner", 4 * m.hidden, widest);
  m.max_positions = s.size("n_positions");
  m.norm_epsilon = s.positive("layer_norm_epsilon", 1e-5);
  m.activation = activation_of(s.word("activation_function", "gelu_new"), s, "activation_function");
  m.hidden_dropout = s.fraction("resid_pdrop", 0.1);
  m.attention_dropout = s.fraction("attn_pdrop", 0.1);
  m.tied_output = s.yes("tie_word_embeddings", true);
  s.must_be("scale_attn_weights", true);
  s.must_be("scale_attn_by_inverse_layer_idx", false);
  s.must_be("add_cross_attention", false);
}

void read_biases(ModelConfig& m, Family family, Settings& s) {
  m.qkv_bias = m.linear_bias = false;
  if (family == Family::qwen2) m.qkv_bias = true;
  if (family == Family::mistral || family == Family::qwen2) return;
  const bool attention = s.yes("attention_bias", false);
  const bool mlp = family == Family::llama && s.yes("mlp_bias", false);
  if (attention != mlp) s.refuse("attention_bias", "weft has biases in attention and MLP, or in neither");
  m.qkv_bias = m.linear_bias = attention;
}

void read_llama_like(ModelConfig& m, Family family, Settings& s) {
  m.layers = int(s.size("num_hidden_layers", most_layers));
  m.hidden = s.size("hidden_size", widest);
  m.heads = int(s.size("num_attention_heads", most_heads));
  m.groups = int(family == Family::llama ? s.size_or("num_key_value_heads", m.heads, most_heads)
                                         : s.size("num_key_value_heads", most_heads));
  const bool own_width = family == Family::qwen3 || family == Family::gemma;
  m.channels = own_width ? s.size("head_dim", widest / 16) : s.size_or("head_dim", 0, widest / 16);
  m.ffn_hidden = s.size("intermediate_size", widest);
  m.max_positions = s.size("max_position_embeddings");
  m.norm = NormKind::rms;
  m.norm_epsilon = s.positive("rms_norm_eps", 1e-6);
  m.gated = true;
  m.hidden_dropout = 0;
  m.attention_dropout = s.fraction("attention_dropout", 0);
  m.tied_output = s.yes("tie_word_embeddings", family == Family::gemma);
  m.qk_norm = family == Family::qwen3;
  read_biases(m, family, s);
  read_rotary(m, s);
  read_window(m, family, s);
  if (family == Family::gemma) {
    // transformers computes the tanh form whatever the older of the two settings says.
    m.activation = activation_of(s.word("hidden_activation", "gelu_pytorch_tanh"), s, "hidden_activation");
    (void)s.find("hidden_act");
    m.norm_centered_gain = true;
    m.embedding_multiplier = std::sqrt(double(m.hidden));
    s.must_be("use_bidirectional_attention", false);
  } else {
    m.activation = activation_of(s.word("hidden_act", "silu"), s, "hidden_act");
  }
}

Family family_of(Settings& s) {
  const std::string word = s.word("model_type", "");
  const auto known = words(Family{});
  const auto at = std::ranges::find(known, word);
  if (at == known.end()) s.refuse("model_type", text("weft reads ", join(known, ", ")));
  return Family(at - known.begin());
}

Dtype dtype_of_word(Settings& s) {
  const char* name = s.find("dtype") != nullptr ? "dtype" : "torch_dtype";
  const std::string word = s.word(name, "float32");
  if (word == "bfloat16") return Dtype::bf16;
  if (word == "float16") return Dtype::f16;
  return Dtype::f32;
}

void read_ends(HubConfig& out, Settings& s) {
  const json* value = s.find("eos_token_id");
  if (value == nullptr) return;
  const json list = value->is_array() ? *value : json::array({*value});
  for (const json& id : list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= std::uint64_t(most))
      s.refuse("eos_token_id", "expected an id or a list of ids");
    out.ends.push_back(id.get<std::int32_t>());
  }
}

}  // namespace

HubConfig hub_config_from_json(std::string_view from, const std::string& who) {
  const json object = checkpoint::strict_json(from, who, 8);
  Settings s(object, who);
  HubConfig out{.family = family_of(s)};
  ModelConfig& m = out.model;
  if (out.family == Family::gpt2)
    read_gpt2(m, s);
  else
    read_llama_like(m, out.family, s);
  m.vocabulary = s.size("vocab_size");
  m.sequence = m.max_positions;
  for (const char* name : {"quantization_config", "num_experts", "num_local_experts",
                           "attn_logit_softcapping", "final_logit_softcapping"})
    s.must_be_absent(name);
  out.dtype = dtype_of_word(s);
  read_ends(out, s);
  for (const std::string& name : s.unasked())
    out.notices.push_back(text(who, ": \"", name, "\" is a setting that weft does not know and passes over"));
  try {
    complete(m);
  } catch (const Error& error) {
    fail(Kind::data, who, ": ", error.what());
  }
  if (m.positions == Positions::rotary && m.channels % 2 != 0)
    fail(Kind::data, who, ": heads of ", m.channels, " channels, and rotary positions turn them in pairs");
  return out;
}

HubConfig read_hub_config(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "config.json";
  return hub_config_from_json(read_file(file), file.string());
}

bool is_hub_directory(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::is_regular_file(directory / "config.json", error) &&
         !std::filesystem::exists(directory / checkpoint::complete_name, error) &&
         checkpoint::step_directories(directory).empty();
}

}  // namespace weft::exchange
