// DeepSpeed's keys of ZeRO, what it puts elsewhere, and files.
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/cli/dialect/deepspeed_rows.h"

namespace weft::cli::dialect::ds {
namespace {

using Json = nlohmann::json;
using enum Shape;

void shard_ranks(Taking& t, const Key& key, const Json& value) {
  const double n = value.get<double>();
  if (n == -1) return;
  if (!(n >= 1 && n <= legal::size_limit))
    fail(Kind::usage, key.path, ": ", n, " is neither -1 nor a number of ranks");
  t.out().shard_ranks = std::int64_t(n);
}

constexpr std::string_view
    optimizer_at = "zero_optimization.offload_optimizer",
    on_disk = R"({"zero_optimization":{"offload_optimizer":{"device":"nvme","nvme_path":"/tmp"}}})";

/// Whether what may lie elsewhere lies in files; or in the host's memory, or nowhere else.
enum class Elsewhere : std::uint8_t { nowhere, in_memory, in_files };

Elsewhere elsewhere_of(const Key& key, const std::string& device) {
  if (device == "none") return Elsewhere::nowhere;
  if (device == "cpu") return Elsewhere::in_memory;
  if (device == "nvme") return Elsewhere::in_files;
  fail(Kind::usage, key.path, " ", device, " is none of none, cpu and nvme");
}

void offload_optimizer(Taking& t, const Key& key, const Json& value) {
  const Elsewhere where = elsewhere_of(key, value.get<std::string>());
  if (where == Elsewhere::nowhere) return;
  t.set(key.path, "optimizer.offload.on", {"true"});
  if (where == Elsewhere::in_memory) return;
  const std::string path = t.word_at("zero_optimization.offload_optimizer.nvme_path", "");
  if (path.empty())
    fail(Kind::usage, key.path, " nvme needs ", optimizer_at, ".nvme_path: a directory on a local disk");
  t.set("zero_optimization.offload_optimizer.nvme_path", "optimizer.offload.directory", {path});
}

void weights_too(Taking& t, const Key& key) {
  t.set(key.path, "optimizer.offload.on", {"true"});
  t.set(key.path, "optimizer.offload.weights", {"true"});
}
/// What older files say.
void states_in_memory(Taking& t, const Key& key, const Json& value) {
  if (value.get<bool>()) t.set(key.path, "optimizer.offload.on", {"true"});
}
void weights_in_memory(Taking& t, const Key& key, const Json& value) {
  if (value.get<bool>()) weights_too(t, key);
}

// One file of a rank holds both.
void offload_parameters(Taking& t, const Key& key, const Json& value) {
  const Elsewhere where = elsewhere_of(key, value.get<std::string>());
  if (where == Elsewhere::nowhere) return;
  const bool has_file = t.word_at("zero_optimization.offload_optimizer.device", "none") == "nvme";
  // Beside states in files weights stay in memory as they are.
  if (where == Elsewhere::in_memory && !has_file) weights_too(t, key);
  if (where == Elsewhere::in_memory) return;
  if (!has_file)
    fail(Kind::usage, key.path, " nvme needs ", optimizer_at,
         ".device nvme: states take six times the room of weights");
  const std::string path = t.word_at("zero_optimization.offload_optimizer.nvme_path", "");
  const std::string own = t.word_at("zero_optimization.offload_param.nvme_path", path);
  if (own != path)
    fail(Kind::usage, key.path, " nvme: its nvme_path ", own, " is not ", optimizer_at, ".nvme_path ", path,
         ": weights and states of a rank lie in one file");
  t.set(key.path, "optimizer.offload.weights", {"true"});
}

void offload_ratio(Taking& t, const Key& key, const Json& value) {
  if (t.word_at("zero_optimization.offload_optimizer.device", "none") == "none") return;
  t.set(key.path, "optimizer.offload.fraction", {write_word(value.get<double>())});
}
void with_device(Taking&, const Key&, const Json&) {}  // `offload_optimizer` has read it

constexpr std::string_view
    as_needed = "weights are gathered as a layer needs them, and the next layer's meanwhile",
    in_order = "gradients are added in the order that buckets and the schedule give",
    all_used = "every weight takes part in every step",
    saved_whole =
        "checkpoints hold whole tensors, whoever loads them; "
        "weft checkpoint convert writes them for others",
    any_layout = "a checkpoint is written by all ranks at once and loads under any layout",
    ahead = "files are read ahead of the update and written behind it, in runs that a buffer holds",
    one_way = "there is one implementation",
    in_four = "what int4 leaves out of a gradient is not added to the next",
    next_layer = "the next layer's weights are read while one computes",
    states = "`optimizer.offload`: states in the host's memory, as offload_optimizer with cpu",
    parameters = "weights in the host's memory, as offload_param with cpu";

// clang-format off
constexpr Key stages[] = {
    sets("zero_optimization.stage", whole, "parallel.zero", "what data-parallel ranks cut up: 1 states, 2 gradients too, 3 weights too", "2"),
    sets("zero_optimization.overlap_comm", flag, "parallel.overlap_reduce", "gradients are added during backward", "true"),
    sets("zero_optimization.reduce_bucket_size", whole, "parallel.bucket_elements", "gradients that are added over ranks at once", "100000000"),
    does("zero_optimization.mics_shard_size", whole, shard_ranks,
         "`parallel.shard_groups` = data-parallel ranks divided by this: each group holds all that is cut up", "2"),
    idle("zero_optimization.mics_hierarchical_params_gather", flag, as_needed, "true"),
    sets("zero_optimization.zero_hpz_partition_size", whole, "parallel.near_ranks",
         "ranks of a machine that hold cut weights a second time among them; 1 and 0: none do", "2"),
    sets("zero_optimization.zero_quantized_weights", flag, "parallel.wire.weights",
         "cut matrices are gathered as int8 with a scale a block", "true"),
    idle("zero_optimization.zero_quantized_nontrainable_weights", flag, "every weight is trained", "true"),
    sets("zero_optimization.zero_quantized_gradients", flag, "parallel.wire.gradients",
         "cut gradients of matrices travel as int4 with a scale a block", "true"),
    refuses("zero_optimization.zeropp_loco_param", map, in_four, "", "{\"err_beta\":0.8}"),
    refuses("zero_optimization.zenflow", map, "an optimizer that runs behind the steps", "", "{}"),
    idle("zero_optimization.allgather_partitions", flag, as_needed, "true"),
    idle("zero_optimization.allgather_bucket_size", whole, as_needed, "500000000"),
    idle("zero_optimization.reduce_scatter", flag, in_order, "true"),
    idle("zero_optimization.contiguous_gradients", flag, in_order, "true"),
    idle("zero_optimization.use_multi_rank_bucket_allreduce", flag, in_order, "true"),
    idle("zero_optimization.round_robin_gradients", flag, in_order, "true"),
    idle("zero_optimization.sub_group_size", whole, "the update visits runs of memory of its own size", "1000000000"),
    idle("zero_optimization.ignore_unused_parameters", flag, all_used, "true"),
    idle("zero_optimization.load_from_fp32_weights", flag, "masters are saved and loaded in f32", "true"),
    idle("zero_optimization.elastic_checkpoint", flag, any_layout, "true"),
    idle("zero_optimization.pipeline_loading_checkpoint", flag, any_layout, "true"),
    idle("zero_optimization.legacy_stage1", flag, one_way, "true"),
    idle("zero_optimization.memory_efficient_linear", flag, one_way, "true"),
    idle("zero_optimization.override_module_apply", flag, one_way, "true"),
    idle("zero_optimization.enable_sanity_checks", flag, "debts and leases are always checked", "true"),
    idle("zero_optimization.log_trace_cache_warnings", flag, "the order of layers is known, and nothing is traced", "true"),
    idle("zero_optimization.leaf_module", map, "a lease is a layer's, whatever is in it", "{}"),
    idle("zero_optimization.save_muon_momentum_buffer_in_memory", flag, "all states of muon stay in memory", "true"),
};

constexpr Key third_stage[] = {
    idle("zero_optimization.stage3_max_live_parameters", whole, as_needed, "1000000000"),
    idle("zero_optimization.stage3_max_reuse_distance", whole, as_needed, "1000000000"),
    idle("zero_optimization.stage3_prefetch_bucket_size", whole, as_needed, "50000000"),
    idle("zero_optimization.stage3_param_persistence_threshold", whole, as_needed, "100000"),
    idle("zero_optimization.stage3_model_persistence_threshold", whole, as_needed, "1000000000"),
    idle("zero_optimization.stage3_module_granularity_threshold", whole, as_needed, "0"),
    idle("zero_optimization.stage3_use_all_reduce_for_fetch_params", flag, as_needed, "true"),
    idle("zero_optimization.stage3_allgather_sequential", flag, as_needed, "true"),
    idle("zero_optimization.stage3_partition_stream_chunk_size", whole, "no rank ever holds more than its own part", "0"),
    idle("zero_optimization.stage3_gather_16bit_weights_on_model_save", flag, saved_whole, "true"),
    idle("zero_optimization.stage3_gather_fp16_weights_on_model_save", flag, saved_whole, "true"),
};

constexpr Key elsewhere[] = {
    beside(on_disk, does("zero_optimization.offload_optimizer.device", text, offload_optimizer,
         "nvme: `optimizer.offload`, states in a file of every rank; cpu: in the host's memory, "
         "where ranks on processors compute anyway; none: nothing", "\"nvme\"")),
    beside(on_disk, does("zero_optimization.offload_optimizer.nvme_path", text, with_device, "`optimizer.offload.directory`", "\"/var\"")),
    beside(on_disk, does("zero_optimization.offload_optimizer.ratio", real, offload_ratio,
         "`optimizer.offload.fraction`: how much of them lies in files", "0.5")),
    idle("zero_optimization.offload_optimizer.buffer_count", whole, ahead, "4"),
    idle("zero_optimization.offload_optimizer.pin_memory", flag, ahead, "true"),
    idle("zero_optimization.offload_optimizer.pipeline", flag, ahead, "true"),
    idle("zero_optimization.offload_optimizer.pipeline_read", flag, ahead, "true"),
    idle("zero_optimization.offload_optimizer.pipeline_write", flag, ahead, "true"),
    idle("zero_optimization.offload_optimizer.fast_init", flag, ahead, "true"),
    refuses("zero_optimization.offload_optimizer.super_offload", flag, "another memory's processors for the update", "false", "true"),
    idle("zero_optimization.offload_optimizer.cpuadam_cores_perc", real, "--threads says what a rank computes on", "0.8"),
    beside(on_disk, does("zero_optimization.offload_param.device", text, offload_parameters,
         "nvme: `optimizer.offload.weights`, weights in the file of states; cpu: in the host's memory, "
         "where ranks on processors compute anyway (refused on a GPU); none: nothing", "\"nvme\"")),
    idle("zero_optimization.offload_param.nvme_path", text, "weights lie where offload_optimizer puts states", "\"/tmp\""),
    idle("zero_optimization.offload_param.buffer_count", whole, next_layer, "5"),
    idle("zero_optimization.offload_param.buffer_size", whole, next_layer, "100000000"),
    idle("zero_optimization.offload_param.max_in_cpu", whole, next_layer, "1000000000"),
    idle("zero_optimization.offload_param.pin_memory", flag, next_layer, "true"),
    does("zero_optimization.cpu_offload", flag, states_in_memory, states, "true"),
    does("zero_optimization.cpu_offload_params", flag, weights_in_memory, parameters, "true"),
    does("zero_optimization.cpu_offload_param", flag, weights_in_memory, parameters, "true"),
    idle("zero_optimization.cpu_offload_use_pin_memory", flag, "only cpu_offload reads it", "true"),
    idle("aio.block_size", whole, ahead, "1048576"),
    idle("aio.queue_depth", whole, ahead, "8"),
    idle("aio.thread_count", whole, ahead, "1"),
    idle("aio.intra_op_parallelism", whole, ahead, "1"),
    idle("aio.single_submit", flag, ahead, "true"),
    idle("aio.overlap_events", flag, ahead, "true"),
    idle("aio.use_gds", flag, ahead, "true"),
};
// clang-format on

}  // namespace

std::vector<Key> zero_keys() {
  std::vector<Key> out(std::begin(stages), std::end(stages));
  out.insert(out.end(), std::begin(third_stage), std::end(third_stage));
  out.insert(out.end(), std::begin(elsewhere), std::end(elsewhere));
  return out;
}

}  // namespace weft::cli::dialect::ds
