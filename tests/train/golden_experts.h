// The mixtures of tests/golden/experts: how each is said in our settings, and what its files hold.
#pragma once

#include <map>

#include "tests/train/golden_encoder.h"

namespace weft::testing::experts {

inline constexpr std::int64_t sequence = 32, hidden = 64, heads = 4;

/// Our names and Megatron's.
inline constexpr GoldenEncoder::Spelling spelling[] = {
    {"embedding.words", "embedding.word_embeddings.weight"},
    {"embedding.positions", "embedding.position_embeddings.weight"},
    {"output.words", "output_layer.weight"},
    {"layers.", "decoder.layers."},
    {"attention_norm", "input_layernorm"},
    {"attention.qkv", "self_attention.linear_qkv"},
    {"attention.project", "self_attention.linear_proj"},
    {"mlp_norm", "pre_mlp_layernorm"},
    {".experts.", ".mlp.experts.local_experts."},
    {".router.", ".mlp.router."},
    {".shared.", ".mlp.shared_experts."},
    {".up.", ".linear_fc1."},
    {".down.", ".linear_fc2."},
    {"final_norm", "decoder.final_layernorm"},
    {".gain", ".weight"}};

inline ModelConfig common() {
  ModelConfig c;
  c.layers = 2;
  c.hidden = hidden;
  c.heads = heads;
  c.groups = 2;
  c.ffn_hidden = 96;
  c.sequence = c.max_positions = sequence;
  c.vocabulary = 128;
  c.positions = Positions::rotary;
  c.norm = NormKind::rms;
  c.activation = Activation::silu;
  c.gated = true;
  c.linear_bias = c.qkv_bias = c.tied_output = false;
  c.hidden_dropout = c.attention_dropout = 0;
  c.experts.count = 4;
  c.experts.ffn_hidden = 24;
  return c;
}

inline ModelConfig m1() {
  ModelConfig c = common();
  c.experts.router.coefficients = {0.02};
  c.experts.router.z_loss = 0.003;
  return c;
}

inline ModelConfig m2() {
  ModelConfig c = common();
  c.experts.count = 6;
  c.experts.layers = {0, 1};
  c.experts.shared_hidden = 40;
  c.experts.router = {.chosen = 1, .softmax_first = true, .coefficients = {0.01}};
  return c;
}

inline ModelConfig m3() {
  ModelConfig c = common();
  c.groups = 4;
  c.experts.count = 8;
  c.experts.ffn_hidden = 12;
  c.experts.router = {.score = RouterScore::sigmoid,
                      .groups = 2,
                      .groups_kept = 1,
                      .scaling = 2.5,
                      .expert_bias = true,
                      .bias_rate = 0.01,
                      .balancing = {Balancing::seq_aux_loss},
                      .coefficients = {0.05}};
  return c;
}

inline ModelConfig m4() {
  ModelConfig c = common();
  c.groups = 1;
  c.experts.router = {.coefficients = {0.01}, .capacity = 0.8};
  return c;
}

inline ModelConfig m5() {
  ModelConfig c = common();
  c.groups = 4;
  c.positions = Positions::learned;
  c.norm = NormKind::layer;
  c.activation = Activation::gelu_erf;
  c.gated = false;
  c.linear_bias = c.qkv_bias = c.tied_output = true;
  c.experts.ffn_hidden = 32;
  c.experts.router.coefficients = {0.01};
  return c;
}

/// One of the originals: a folder, the file of its steps there, and whether the mean is one over tokens.
struct Original {
  std::string folder, run;
  ModelConfig model;
  bool per_token = false;
  std::string grads = "probe_grads.safetensors";  // of its probe; empty: not written down
  double norm = 1e-5;                             // how far gradient norms may part, of themselves

  /// Written down after twenty steps.
  bool has_weights() const { return run == "run.json" && folder != "m5"; }
};

inline ModelConfig changed(ModelConfig c, void (*change)(RouterConfig&)) {
  change(c.experts.router);
  return c;
}

inline std::vector<Original> originals() {
  const auto with = [](ModelConfig c, void (*change)(RouterConfig&)) {
    return changed(std::move(c), change);
  };
  return {
      {"m1", "run.json", m1()},
      {"m1", "run_allgather.json", m1()},
      {"m1", "run_router_fp64.json", with(m1(), [](RouterConfig& r) { r.precision = RouterPrecision::f64; })},
      {"m1", "run_per_token_loss.json", m1(), true, "probe_grads_per_token_loss.safetensors"},
      {"m1",
       "run_two_losses.json",
       with(m1(),
            [](RouterConfig& r) {
              r.balancing = {Balancing::aux_loss, Balancing::seq_aux_loss};
              r.coefficients = {0.02, 0.05};
            }),
       false,
       {}},
      {"m1", "run_global_aux.json",
       with(m1(), [](RouterConfig& r) { r.balancing = {Balancing::global_aux_loss}; })},
      {"m2", "run.json", m2()},
      {"m3", "run.json", m3()},
      {"m4", "run.json", m4()},
      {"m4", "run_probs_pad.json", with(m4(), [](RouterConfig& r) { r.filled = true; })},
      {"m4", "run_position.json", with(m4(), [](RouterConfig& r) { r.drop = DropPolicy::position; }), false,
       "probe_grads_position.safetensors"},
      {"m4", "run_position_pad.json",
       with(m4(),
            [](RouterConfig& r) {
              r.drop = DropPolicy::position;
              r.filled = true;
            }),
       false, "probe_grads_position.safetensors"},
      {"m5", "run.json", m5()},
  };
}

inline GoldenEncoder golden_of(const Original& original) { return {"experts/" + original.folder, spelling}; }

inline ModelConfig completed_model(const Original& original) {
  ModelConfig model = original.model;
  complete(model);
  return model;
}

/// Of two samples' rows [2, s], as a batch has them: [s, 2].
template <class T>
std::vector<T> turned(const checkpoint::TensorFile& file, const std::string& name, std::int64_t first) {
  const auto all = read<T>(file, name);
  std::vector<T> out;
  for (std::int64_t i = 0; i < sequence; ++i)
    for (std::int64_t row = first; row < first + 2; ++row)
      out.push_back(all[std::size_t(row * sequence + i)]);
  return out;
}

inline Batch golden_batch(Device& device, const checkpoint::TensorFile& file, std::int64_t first) {
  std::vector<std::int32_t> places, positions;
  for (std::int64_t i = 0; i < sequence; ++i) {
    places.push_back(std::int32_t(i));
    positions.insert(positions.end(), 2, std::int32_t(i));
  }
  const Shape shape{sequence, 2};
  Batch batch;
  batch.text = {.tokens = from_host(device, shape, turned<std::int32_t>(file, "tokens", first)),
                .places = from_host(device, {sequence}, places),
                .positions = from_host(device, shape, positions),
                .types = {},
                .segments = {}};
  batch.targets = from_host(device, shape, turned<std::int32_t>(file, "labels", first));
  batch.mask = from_host(device, shape, turned<float>(file, "loss_mask", first));
  batch.hold_samples(device, {first, first + 1});
  return batch;
}

/// By the name under which it is told.
inline double told(const Replica& replica, const StepReport& report, const std::string& name) {
  for (std::size_t i = 0; i < replica.losses().size(); ++i)
    if (replica.losses()[i].name == name) return report.losses[i];
  ADD_FAILURE() << "no loss is called " << name;
  return 0;
}

/// As the original was trained: its rates, its clipping, its decay.
inline StepOrder golden_order(const Original& original, const nlohmann::json& expected, std::int64_t step) {
  const double rate = expected["lr"];
  return {.seed = 1,
          .step = step,
          .rate = rate,
          .ends_rate = rate,
          .decay = 0.1,
          .clip = 1.0,
          .per_token = original.per_token};
}

}  // namespace weft::testing::experts
