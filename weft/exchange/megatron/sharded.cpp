// torch_dist: the model's tensors, and an optimizer's where they are cut as the model's are.
#include "weft/exchange/megatron/sharded.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/exchange/megatron/flat_sharded.h"
#include "weft/exchange/megatron/keys.h"

namespace weft::exchange::megatron {
namespace {

constexpr const char* common_key = "common_state/shard_0_1";

/// Steps through the dimensions that count layers and experts, none of which is empty.
template <class Act>
void each_place(std::span<const std::int64_t> size, const Act& act) {
  Numbers at(size.size());
  while (true) {
    act(std::as_const(at));
    std::size_t i = size.size();
    while (i > 0 && ++at[i - 1] == size[i - 1]) at[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace

/// Fills a checkpoint from such a directory.
class Sharded {
 public:
  Sharded(Checkpoint& into, const std::filesystem::path& directory)
      : into_(into),
        states_(directory.string()),
        directory_(directory),
        items_(std::make_shared<Items>(directory)) {
    into.items_ = items_;
  }

  void read() {
    read_common();
    for (const auto& [key, what] : items_->tensors()) read_tensor(key);
    into_.model_.check_whole();
    for (const Tensors* tensors : {&states_.masters, &states_.first_moments, &states_.second_moments})
      tensors->check_whole();
    if (family_of(into_.model_) == Family::t5)
      for (Tensors* tensors :
           {&into_.model_, &states_.masters, &states_.first_moments, &states_.second_moments})
        drop_second_names(*tensors, directory_.string());
    const FlatKeys flat = flat_keys_of(*items_);
    if (!flat.empty()) {
      if (const auto updates = updates_of(flat)) into_.updates_ = *updates;
      into_.settle_ = [items = items_](const Checkpoint& checkpoint) {
        return settle_flat(checkpoint, *items);
      };
    } else if (states_.masters.all().empty()) {
      into_.states_ = std::move(states_);
    } else {
      into_.settle_ = [states = std::move(states_)](const Checkpoint& checkpoint) {
        return proven(states, checkpoint);
      };
    }
  }

 private:
  void read_common() {
    const std::filesystem::path file = directory_ / "common.pt";
    std::error_code error;
    if (std::filesystem::exists(file, error)) {
      into_.files_.push_back(std::make_unique<MappedFile>(file));
      const torch::Archive archive(into_.files_.back()->bytes(), file.string());
      return into_.take_common(archive, file.string());
    }
    if (!items_->has_object(common_key))
      fail(Kind::data, directory_.string(), ": has neither common.pt nor ", common_key,
           ", which say what the model is");
    into_.take_common(items_->open(common_key), items_->who());
  }

  std::optional<std::int64_t> updates_of(const FlatKeys& flat) {
    if (!items_->has_object(flat.groups)) return std::nullopt;
    const torch::Archive& archive = items_->open(flat.groups);
    return updates_in(archive, archive.value());
  }

  // Flat buffers of the optimizer are for later; counters and what restores random numbers are nobody's.
  void read_tensor(const std::string& key) {
    const std::pair<std::string_view, Tensors*> states[] = {
        {"optimizer.state.fp32_param.", &states_.masters},
        {"optimizer.state.param.", &states_.masters},
        {"optimizer.state.exp_avg.", &states_.first_moments},
        {"optimizer.state.exp_avg_sq.", &states_.second_moments}};
    for (const auto& [front, into] : states)
      if (key.starts_with(front)) return read_chunks(*into, key, key.substr(front.size()));
    for (const std::string_view other : {"optimizer.", "chained_", "rng_state", "rerun_state_machine_state"})
      if (key.starts_with(other)) return;
    if (!key.ends_with("_extra_state")) read_chunks(into_.model_, key, key);
  }

  void read_chunks(Tensors& into, const std::string& key, const std::string& name) {
    const Boxes boxes = items_->boxes_of(key);
    for (const Box& box : boxes.chunks) {
      const Items::Opened stored = items_->open_chunk(key, box);
      if (!stored.tensor.held || !is_float(stored.tensor.dtype))
        fail(Kind::data, items_->name_of(key, box.from), ": is of ", stored.tensor.type,
             ", expected float32, bfloat16 or float16");
      add(into, Key(name), {boxes.whole, box}, stored);
    }
  }

  struct Where {
    const Numbers& whole;
    const Box& box;
  };
  void add(Tensors& into, const Key& key, const Where& where, const Items::Opened& stored) {
    const Numbers& whole = where.whole;
    const Box& box = where.box;
    const auto front = std::size_t(key.stacked());
    const std::size_t rank = whole.size() - std::min(front, whole.size());
    if (whole.size() < front || rank < 1 || rank > 2)
      fail(Kind::data, items_->who(), ": ", key.at(Numbers(front)), " has ", rank,
           " dimensions of its own, expected 1 or 2");
    const Shape shape{Dims(std::span(whole).subspan(front))};
    const Numbers &steps = stored.tensor.strides, &size = box.size;
    each_place(std::span(size).first(front), [&](const Numbers& at) {
      Numbers place = at;
      Chunk chunk{.row = box.from[front],
                  .column = rank > 1 ? box.from[front + 1] : 0,
                  .rows = size[front],
                  .columns = rank > 1 ? size[front + 1] : 1,
                  .archive = &stored.archive,
                  .stored = &stored.tensor,
                  .dtype = stored.tensor.dtype,
                  .first = stored.tensor.offset,
                  .row_step = steps[front],
                  .column_step = rank > 1 ? steps[front + 1] : 1};
      for (std::size_t i = 0; i < front; ++i) {
        place[i] += box.from[i];
        if (place[i] >= whole[i])
          fail(Kind::data, items_->who(), ": a chunk of ", key.at(place), " leaves its tensor");
        chunk.first += at[i] * steps[i];
      }
      into.add(key.at(place), shape, chunk);
    });
  }

  Checkpoint& into_;
  States states_;
  std::filesystem::path directory_;
  std::shared_ptr<Items> items_;
};

void read_sharded(Checkpoint& into, const std::filesystem::path& directory) {
  Sharded(into, directory).read();
}

}  // namespace weft::exchange::megatron
