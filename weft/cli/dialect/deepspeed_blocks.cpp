// Blocks of DeepSpeed's configuration that are refused as a whole, with the names in them.
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli::dialect::ds {
namespace {

using enum Shape;

constexpr std::string_view
    elastic =
        "a batch that follows from the number of ranks; --train-samples goes on with other "
        "layouts at one batch",
    tunes = "settings that are searched for; weft train --dry-run says what fits",
    eigen = "eigenvalues of layers", hybrid = "training and generating in turns",
    remote = "checkpoints of another service", elastic_on = R"({"elasticity":{"enabled":true}})",
    tunes_on = R"({"autotuning":{"enabled":true}})", eigen_on = R"({"eigenvalue":{"enabled":true}})",
    hybrid_on = R"({"hybrid_engine":{"enabled":true}})", remote_on = R"({"nebula":{"enabled":true}})";

/// Of a block that is switched on: it has no value that asks for nothing.
constexpr Key part(std::string_view on, std::string_view path, Shape shape, std::string_view text,
                   std::string_view sample) {
  return beside(on, refuses(path, shape, text, "", sample));
}

// clang-format off
constexpr Key blocks[] = {
    refuses("elasticity.enabled", flag, elastic, "false", "true"),
    part(elastic_on, "elasticity.max_train_batch_size", whole, elastic, "2000"),
    part(elastic_on, "elasticity.micro_batch_sizes", list, elastic, "[2]"),
    part(elastic_on, "elasticity.min_gpus", whole, elastic, "1"),
    part(elastic_on, "elasticity.max_gpus", whole, elastic, "8"),
    part(elastic_on, "elasticity.min_time", whole, elastic, "0"),
    part(elastic_on, "elasticity.prefer_larger_batch", flag, elastic, "true"),
    part(elastic_on, "elasticity.ignore_non_elastic_batch_info", flag, elastic, "true"),
    part(elastic_on, "elasticity.version", real, elastic, "0.2"),
    part(elastic_on, "elasticity.num_gpus_per_node", whole, elastic, "1"),
    part(elastic_on, "elasticity.model_parallel_size", whole, elastic, "1"),
    refuses("autotuning.enabled", flag, tunes, "false", "true"),
    part(tunes_on, "autotuning.fast", flag, tunes, "true"),
    part(tunes_on, "autotuning.metric", text, tunes, "\"throughput\""),
    part(tunes_on, "autotuning.metric_path", text, tunes, "\"m\""),
    part(tunes_on, "autotuning.start_profile_step", whole, tunes, "3"),
    part(tunes_on, "autotuning.end_profile_step", whole, tunes, "5"),
    part(tunes_on, "autotuning.overwrite", flag, tunes, "true"),
    part(tunes_on, "autotuning.results_dir", text, tunes, "\"r\""),
    part(tunes_on, "autotuning.exps_dir", text, tunes, "\"e\""),
    part(tunes_on, "autotuning.tuner_type", text, tunes, "\"gridsearch\""),
    part(tunes_on, "autotuning.tuner_early_stopping", whole, tunes, "5"),
    part(tunes_on, "autotuning.tuner_num_trials", whole, tunes, "50"),
    part(tunes_on, "autotuning.arg_mappings", map, tunes, "{}"),
    part(tunes_on, "autotuning.model_info", map, tunes, "{}"),
    part(tunes_on, "autotuning.model_info_path", text, tunes, "\"m\""),
    part(tunes_on, "autotuning.mp_size", whole, tunes, "1"),
    part(tunes_on, "autotuning.max_train_batch_size", whole, tunes, "64"),
    part(tunes_on, "autotuning.min_train_batch_size", whole, tunes, "1"),
    part(tunes_on, "autotuning.max_train_micro_batch_size_per_gpu", whole, tunes, "8"),
    part(tunes_on, "autotuning.min_train_micro_batch_size_per_gpu", whole, tunes, "1"),
    part(tunes_on, "autotuning.num_tuning_micro_batch_sizes", whole, tunes, "3"),
    refuses("sparse_attention", map, "attention to some tokens by a pattern; --window-size is one", "", "{\"mode\":\"fixed\"}"),
    refuses("compression_training", map, "weights of fewer bits, or fewer weights", "", "{\"weight_quantization\":{}}"),
    refuses("quantize_training.enabled", flag, "weights of fewer bits", "false", "true"),
    refuses("weight_quantization", map, "weights of fewer bits", "", "{}"),
    refuses("eigenvalue.enabled", flag, eigen, "false", "true"),
    part(eigen_on, "eigenvalue.verbose", flag, eigen, "true"),
    part(eigen_on, "eigenvalue.max_iter", whole, eigen, "100"),
    part(eigen_on, "eigenvalue.tol", real, eigen, "0.01"),
    part(eigen_on, "eigenvalue.stability", real, eigen, "0.000001"),
    part(eigen_on, "eigenvalue.gas_boundary_resolution", whole, eigen, "1"),
    part(eigen_on, "eigenvalue.layer_name", text, eigen, "\"layer\""),
    part(eigen_on, "eigenvalue.layer_num", whole, eigen, "12"),
    refuses("hybrid_engine.enabled", flag, hybrid, "false", "true"),
    part(hybrid_on, "hybrid_engine.max_out_tokens", whole, hybrid, "512"),
    part(hybrid_on, "hybrid_engine.inference_tp_size", whole, hybrid, "1"),
    part(hybrid_on, "hybrid_engine.release_inference_cache", flag, hybrid, "true"),
    part(hybrid_on, "hybrid_engine.pin_parameters", flag, hybrid, "true"),
    part(hybrid_on, "hybrid_engine.tp_gather_partition_size", whole, hybrid, "8"),
    refuses("nebula.enabled", flag, remote, "false", "true"),
    part(remote_on, "nebula.persistent_storage_path", text, remote, "\"p\""),
    part(remote_on, "nebula.persistent_time_interval", whole, remote, "100"),
    part(remote_on, "nebula.num_of_version_in_retention", whole, remote, "2"),
    part(remote_on, "nebula.enable_nebula_load", flag, remote, "true"),
    part(remote_on, "nebula.load_path", text, remote, "\"p\""),
    refuses("datastates_ckpt", map, "checkpoints by another program; --async-save writes while training goes on", "", "{}"),
    refuses("expert_parallel", map, "experts that are spread without flags; --expert-model-parallel-size says it", "", "{}"),
};
// clang-format on

}  // namespace

std::vector<Key> block_keys() { return {std::begin(blocks), std::end(blocks)}; }

}  // namespace weft::cli::dialect::ds
