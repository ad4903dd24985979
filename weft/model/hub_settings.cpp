// Which settings matter to nobody, and the words of activations.
#include "weft/model/hub_settings.h"

#include <algorithm>

namespace weft {
namespace {

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

}  // namespace

std::vector<std::string> HubSettings::unasked() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : object_.items())
    if (!asked_.contains(name) && std::ranges::find(harmless, name) == std::end(harmless))
      out.push_back(name);
  return out;
}

Activation hub_activation(const std::string& word, HubSettings& settings, const char* name) {
  if (word == "silu" || word == "swish") return Activation::silu;
  if (word == "gelu_new" || word == "gelu_pytorch_tanh" || word == "gelu_fast") return Activation::gelu;
  if (word == "gelu") return Activation::gelu_erf;
  if (word == "quick_gelu") return Activation::quick_gelu;
  if (word == "relu") return Activation::relu;
  if (word == "relu2") return Activation::squared_relu;
  settings.refuse(name, "which is no activation that weft knows");
}

std::string_view hub_activation_word(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return "silu";
    case Activation::gelu:
      return "gelu_new";
    case Activation::gelu_erf:
      return "gelu";
    case Activation::quick_gelu:
      return "quick_gelu";
    case Activation::relu:
      return "relu";
    case Activation::squared_relu:
      return "relu2";
    default:
      fail(Kind::usage, "exchange: no Hugging Face model that weft writes has the activation ",
           words(activation)[std::size_t(activation)]);
  }
}

}  // namespace weft
