#include "weft/exchange/megatron/flat_sharded.h"

#include <algorithm>
#include <charconv>

#include "weft/base/error.h"
#include "weft/exchange/megatron/flat_layout.h"
#include "weft/exchange/megatron/order.h"

namespace weft::exchange::megatron {
namespace {

constexpr std::int64_t most_ranks = 1 << 20;

/// Takes `front` and a number off a key; what stands before `front` must be nothing.
bool take(std::string_view& key, std::string_view front, std::int64_t& number) {
  if (!key.starts_with(front)) return false;
  const char* begin = key.data() + front.size();
  const auto [end, error] = std::from_chars(begin, key.data() + key.size(), number);
  if (error != std::errc() || number < 0 || number > most_ranks) return false;
  key.remove_prefix(std::size_t(end - key.data()));
  return true;
}

/// [chained_C.]optimizer.distributed.dp_group_idx_G.…, of which … is left.
bool take_owner(std::string_view& key, FlatKeys::Owner& owner) {
  if (take(key, "chained_", owner.first)) {
    if (!key.starts_with('.')) return false;
    key.remove_prefix(1);
  }
  if (!take(key, "optimizer.distributed.dp_group_idx_", owner.second) || !key.starts_with('.')) return false;
  key.remove_prefix(1);
  return true;
}

/// gbuf_idx_B.dtype_(…).bucket_idx_K.STATE
bool take_place(std::string_view key, FlatKeys::Place& place, std::size_t& state) {
  if (!take(key, "gbuf_idx_", place.buffer)) return false;
  const std::size_t bucket = key.find(".bucket_idx_");
  if (bucket == std::string_view::npos) return false;
  key.remove_prefix(bucket);
  if (!take(key, ".bucket_idx_", place.bucket) || !key.starts_with('.')) return false;
  const auto found = std::ranges::find(state_names, key.substr(1));
  state = std::size_t(found - state_names.begin());
  return found != state_names.end();
}

/// Reads what keys name; `why_not` says what is not read.
class Reader {
 public:
  Reader(Items& items, const FlatKeys& keys) : items_(items), keys_(keys) {}

  std::vector<FlatOptimizer> read() {
    std::map<std::int64_t, FlatOptimizer> all;
    for (const auto& [owner, buckets] : keys_.buckets)
      for (const auto& [place, names] : buckets) add_bucket(all[owner.first][owner.second], place, names);
    for (const auto& [owner, key] : keys_.objects) {
      const torch::Archive& archive = items_.open(key);
      const auto* list = archive.value().list();  // objects lie in lists of one
      const bool listed = list != nullptr && list->size() == 1;
      const std::string missed = add_joined(all[owner.first][owner.second], archive,
                                            listed ? list->front() : archive.value(), items_.name_of(key));
      if (why_not.empty()) why_not = missed;
    }
    std::vector<FlatOptimizer> out;
    for (auto& [number, optimizer] : all) out.push_back(std::move(optimizer));
    return out;
  }

  std::string why_not;

 private:
  void add_bucket(std::map<std::int64_t, FlatBuffer>& to, const FlatKeys::Place& place,
                  const std::array<std::string, state_names.size()>& names) {
    FlatBuffer& buffer = to[place.buffer];
    if (place.bucket != std::ssize(buffer.buckets))
      fail(Kind::data, items_.who(), ": ", names.front(), " has no bucket ", buffer.buckets.size(),
           " before it");
    Bucket& bucket = buffer.buckets.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty())
        fail(Kind::data, items_.who(), ": bucket ", place.bucket, " of a flat buffer has no ",
             state_names[i]);
      const Boxes boxes = items_.boxes_of(names[i]);
      if (boxes.whole.size() != 1 || (i > 0 && boxes.whole.front() != bucket.elements))
        fail(Kind::data, items_.who(), ": ", names[i], " is no row as long as the others of its bucket");
      bucket.elements = boxes.whole.front();
      add_pieces(bucket.states[i], names[i], boxes);
    }
  }

  void add_pieces(std::vector<Piece>& to, const std::string& key, const Boxes& boxes) {
    for (const Box& box : boxes.chunks) {
      const Items::Opened opened = items_.open_chunk(key, box);
      if (!opened.tensor.held || !is_float(opened.tensor.dtype))
        why_not = text(items_.name_of(key, box.from), ": is of ", opened.tensor.type,
                       ", expected float32, bfloat16 or float16");
      to.push_back({box.from.front(), &opened.archive, &opened.tensor});
    }
    std::ranges::sort(to, {}, &Piece::first);
    std::int64_t end = 0;
    for (const Piece& piece : to) {
      if (piece.first != end)
        fail(Kind::data, items_.who(), ": the chunks of ", key,
             piece.first > end ? " leave holes" : " overlap");
      end = piece.end();
    }
    if (end != boxes.whole.front())
      fail(Kind::data, items_.who(), ": the chunks of ", key,
           end < boxes.whole.front() ? " leave holes" : " leave it");
  }

  Items& items_;
  const FlatKeys& keys_;
};

/// Of a stage: its layers, and what the first and the last stage have besides.
struct Stage {
  std::int64_t first = 0, layers = 0;
  bool has_words = false, has_output = false;
};

/// Which layers are in which stage follows from how long the buffers are.
class Search {
 public:
  Search(const Checkpoint& checkpoint, const FlatLayout& layout)
      : checkpoint_(checkpoint),
        layout_(layout),
        names_(family_of(checkpoint.model()), checkpoint.arguments()),
        layers_(names_.layers()),
        experts_(checkpoint.arguments().whole("num_experts") / layout.ways().ep) {}

  std::optional<std::vector<Stage>> stages(const Order& order, std::int64_t bucket_size) const {
    std::vector<Stage> out;
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < layout_.stages(); ++i) {
      Stage stage{first, 0, i == 0, i + 1 == layout_.stages()};
      if (stage.has_output) stage.layers = layers_ - first;
      while (!layout_.fits(i, names_in(stage, 0, order), bucket_size))
        if (stage.has_output || ++stage.layers > layers_ - first) return std::nullopt;
      first += stage.layers;
      out.push_back(stage);
    }
    return out;
  }

  Guess guess(std::vector<Stage> stages, const Order& order, std::int64_t bucket_size) const {
    return {[this, order, all = std::move(stages)](std::int64_t stage, std::int64_t expert_rank) {
              return names_in(all[std::size_t(stage)], expert_rank, order);
            },
            order.experts == Experts::on_its_side, bucket_size};
  }

 private:
  std::vector<std::string> names_in(const Stage& stage, std::int64_t expert_rank, const Order& order) const {
    std::vector<std::string> out;
    const Tensors& model = checkpoint_.model();
    const auto add = [&](const std::string& name, bool otherwise = false) {
      if (otherwise || model.find(name) != nullptr) out.push_back(name);
    };
    const ExpertRange experts{expert_rank * experts_, experts_};
    if (stage.has_words)
      for (const std::string& name : names_.before_layers()) add(name);
    for (std::int64_t layer = stage.first; layer < stage.first + stage.layers; ++layer)
      for (const std::string& name : names_.of_layer(layer, experts, order)) add(name);
    if (stage.has_output)
      for (const std::string& name : names_.behind_layers(experts, order))
        add(name, name == "output_layer.weight" && !stage.has_words && layout_.ways().pp > 1);
    return out;
  }

  const Checkpoint& checkpoint_;
  const FlatLayout& layout_;
  ModuleNames names_;
  std::int64_t layers_, experts_;
};

}  // namespace

FlatKeys flat_keys_of(const Items& items) {
  FlatKeys out;
  for (const auto& [name, what] : items.tensors()) {
    std::string_view key = name;
    FlatKeys::Owner owner;
    FlatKeys::Place place;
    std::size_t state = 0;
    if (take_owner(key, owner) && take_place(key, place, state)) out.buckets[owner][place][state] = name;
  }
  for (const std::string& name : items.objects()) {
    std::string_view key = name;
    FlatKeys::Owner owner;
    if (!take_owner(key, owner)) continue;
    if (key == "param_state/shard_0_1") out.objects[owner] = name;
    if (key == "optimizer/shard_0_1" && owner == FlatKeys::Owner()) out.groups = name;
  }
  return out;
}

States settle_flat(const Checkpoint& checkpoint, Items& items) {
  const std::string where = checkpoint.iteration().directory.string();
  States out(where);
  const FlatKeys keys = flat_keys_of(items);
  Reader reader(items, keys);
  const std::vector<FlatOptimizer> optimizers = reader.read();
  out.why_not = reader.why_not;
  if (!out.why_not.empty()) return out;
  const FlatLayout layout(checkpoint, optimizers);
  out.why_not = layout.why_not();
  if (!out.why_not.empty()) return out;
  out.why_not = text(where, ": its optimizer's flat buffers are not as long as any layers of the model");
  const Search search(checkpoint, layout);
  bool said = false;
  for (const Order& order : orders_of(checkpoint.arguments()))
    for (const std::int64_t size : bucket_sizes(checkpoint.arguments())) {
      auto stages = search.stages(order, size);
      if (!stages) continue;
      States found = layout.states(search.guess(*std::move(stages), order, size));
      if (found.why_not.empty()) return found;
      if (!std::exchange(said, true)) out.why_not = std::move(found.why_not);
    }
  return out;
}

std::string add_joined(std::map<std::int64_t, FlatBuffer>& to, const torch::Archive& archive,
                       const torch::Value& state, const std::string& who) {
  const torch::Map* all = state.map();
  const torch::Value* coalesced = all == nullptr ? nullptr : all->find("buckets_coalesced");
  if (coalesced == nullptr || coalesced->boolean() == nullptr || !*coalesced->boolean())
    return text(who, ": its flat buffers are of a Megatron-LM that wrote each bucket by itself");
  for (const auto& [number, types] : all->entries) {
    if (number.integer() == nullptr) continue;
    if (types.map() == nullptr || types.map()->entries.size() != 1)
      return text(who, ": a flat buffer is of more than one type");
    FlatBuffer& buffer = to[*number.integer()];
    buffer.joined = true;
    Bucket& bucket = buffer.buckets.emplace_back();
    const torch::Map* states = types.map()->entries.front().second.map();
    for (std::size_t i = 0; i < state_names.size(); ++i) {
      const torch::Value* row = states == nullptr ? nullptr : states->find(state_names[i]);
      const torch::StoredTensor* stored = row == nullptr ? nullptr : row->tensor();
      if (stored == nullptr || !stored->held || !is_float(stored->dtype) || stored->size.size() != 1 ||
          !stored->contiguous() || stored->elements() == 0)
        return text(who, ": a flat buffer's ", state_names[i], " is ",
                    row == nullptr ? "missing" : row->kind(), ", expected a row of numbers");
      if (i > 0 && stored->elements() != bucket.elements)
        return text(who, ": a flat buffer's ", state_names[i], " has ", stored->elements(),
                    " numbers, expected ", bucket.elements);
      bucket.elements = stored->elements();
      bucket.states[i] = {{0, &archive, stored}};
    }
  }
  return "";
}

std::array<std::int64_t, 2> bucket_sizes(const Arguments& args) {
  std::int64_t size = args.whole("ddp_bucket_size");
  if (size == 0) size = std::max<std::int64_t>(40'000'000, 1'000'000 * args.whole("data_parallel_size", 1));
  return args.flag("overlap_grad_reduce") ? std::array<std::int64_t, 2>{size, 0}
                                          : std::array<std::int64_t, 2>{0, size};
}

}  // namespace weft::exchange::megatron
