#include "weft/exchange/megatron/cuts.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::exchange::megatron {
namespace {

constexpr double most_ranks = 1 << 20;

std::int64_t degree(const Arguments& args, std::string_view name, std::int64_t otherwise = 1) {
  const std::int64_t n = args.whole(name, otherwise);
  if (n < 1 || n > 65536) fail(Kind::data, args.who(), ": ", name, " is ", n);
  return n;
}

}  // namespace

Degrees degrees_of(const Arguments& args) {
  const std::int64_t tp = degree(args, "tensor_model_parallel_size");
  const Degrees out{.tp = tp,
                    .pp = degree(args, "pipeline_model_parallel_size"),
                    .ep = degree(args, "expert_model_parallel_size"),
                    .experts_tp = degree(args, "expert_tensor_parallel_size", tp),
                    .gated = args.flag("swiglu") || args.flag("geglu") || args.flag("quick_geglu"),
                    .latents_cut = args.word("transformer_impl") == "local"};
  if (const double ranks = double(out.pp) * double(out.ep) * double(std::max(out.tp, out.experts_tp));
      ranks > most_ranks)
    fail(Kind::data, args.who(), ": asks for ", ranks, " ranks, expected ", most_ranks, " at most");
  return out;
}

Cut cut_of(std::string_view name, const Degrees& ways) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("layer_norm_")) return Cut::not_at_all;
  if (has("linear_fc1.")) return ways.gated ? Cut::halves_of_rows : Cut::rows;
  if (has("_down_proj.")) return ways.latents_cut ? Cut::rows : Cut::not_at_all;
  for (const std::string_view of_rows :
       {"word_embeddings.", "output_layer.", "linear_qkv.", "softmax_offset", "linear_q.", "linear_kv.",
        "linear_q_proj.", "_up_proj.", "eh_proj."})
    if (has(of_rows)) return Cut::rows;
  if (name.ends_with("linear_proj.weight") || name.ends_with("linear_fc2.weight")) return Cut::columns;
  return Cut::not_at_all;
}

bool is_of_experts(std::string_view name) { return name.find(".mlp.experts.") != std::string_view::npos; }

Portion portion_of(const TheirTensor& whole, Cut cut, std::int64_t ways, std::int64_t rank) {
  const std::int64_t rows = whole.rows(), columns = whole.columns();
  if (cut == Cut::not_at_all) return {rows, columns, {{.rows = rows}}};
  if (cut == Cut::columns) {
    if (columns % ways != 0) return {};
    return {rows, columns / ways, {{.rows = rows, .column = rank * (columns / ways)}}};
  }
  const std::int64_t halves = cut == Cut::halves_of_rows ? 2 : 1;
  if (rows % (halves * ways) != 0) return {};
  const std::int64_t each = rows / (halves * ways);
  Portion out{halves * each, columns, {}};
  for (std::int64_t half = 0; half < halves; ++half)
    out.blocks.push_back({.first = half * each, .rows = each, .row = (half * ways + rank) * each});
  return out;
}

void add_portion(Tensors& into, const std::string& name, const TheirTensor& whole, const Portion& portion,
                 const Stored& stored) {
  const torch::StoredTensor& tensor = stored.tensor;
  const bool matrix = tensor.size.size() > 1;
  for (const Block& block : portion.blocks)
    into.add(name, whole.shape,
             Chunk{.row = block.row,
                   .column = block.column,
                   .rows = block.rows,
                   .columns = portion.columns,
                   .archive = &stored.archive,
                   .stored = &tensor,
                   .dtype = tensor.dtype,
                   .first = tensor.offset + block.first * tensor.strides[0],
                   .row_step = tensor.strides[0],
                   .column_step = matrix ? tensor.strides[1] : 1});
}

}  // namespace weft::exchange::megatron
