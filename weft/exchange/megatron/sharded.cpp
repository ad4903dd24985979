// torch_dist: .metadata says in which files the chunks of every tensor lie, each a stream of torch.save.
#include "weft/exchange/megatron/sharded.h"

#include <algorithm>
#include <map>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/legal.h"
#include "weft/exchange/megatron/keys.h"
#include "weft/exchange/torch/unpickle.h"

namespace weft::exchange::megatron {
namespace {

using torch::Map;
using torch::Value;
using Numbers = std::vector<std::int64_t>;

constexpr std::string_view common_key = "common_state/shard_0_1";

std::string who_of(const std::filesystem::path& directory) { return (directory / ".metadata").string(); }

const Value& member(const Map& map, std::string_view name, const std::string& who) {
  const Value* found = map.find(name);
  if (found == nullptr) fail(Kind::data, who, ": ", map.type, " has no ", name);
  return *found;
}

const Map& map_at(const Map& map, std::string_view name, const std::string& who) {
  const Map* found = member(map, name, who).map();
  if (found == nullptr) fail(Kind::data, who, ": ", name, " is ", member(map, name, who).kind());
  return *found;
}

std::string text_at(const Map& map, std::string_view name, const std::string& who) {
  const std::string* found = member(map, name, who).text();
  if (found == nullptr) fail(Kind::data, who, ": ", name, " is ", member(map, name, who).kind());
  return *found;
}

std::int64_t number_at(const Map& map, std::string_view name, const std::string& who) {
  const std::int64_t* found = member(map, name, who).integer();
  if (found == nullptr || *found < 0)
    fail(Kind::data, who, ": ", name, " is ", member(map, name, who).kind(), ", expected a place in a file");
  return *found;
}

Numbers numbers_of(const Value& value, const std::string& who) {
  const auto* list = value.list();
  if (list == nullptr || list->size() > std::size_t(Dims::max_rank))
    fail(Kind::data, who, ": sizes are ", value.kind(), ", expected ", Dims::max_rank, " numbers at most");
  Numbers out;
  for (const Value& one : *list) {
    if (one.integer() == nullptr || *one.integer() < 0 || double(*one.integer()) > legal::size_limit)
      fail(Kind::data, who, ": a size is ", one.kind(), ", expected a number from 0 to ", legal::size_limit);
    out.push_back(*one.integer());
  }
  return out;
}

/// Of a tensor's chunk or an object, where it lies.
struct Place {
  std::string file;
  std::int64_t offset = 0, length = 0;
};
using Places = std::map<std::pair<std::string, Numbers>, Place>;

/// A chunk's own dimensions, in front of which layers and experts are counted.
struct Box {
  Numbers from, size;
};

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
      : into_(into), directory_(directory), who_(who_of(directory)) {}

  void read() {
    const MappedFile file(directory_ / ".metadata");
    const Value value = torch::unpickled(file.bytes(), who_);
    if (value.map() == nullptr)
      fail(Kind::data, who_, ": holds ", value.kind(), ", expected torch's Metadata");
    find_places(map_at(*value.map(), "storage_data", who_));
    read_common();
    for (const auto& [key, what] : map_at(*value.map(), "state_dict_metadata", who_).entries)
      if (key.text() != nullptr && what.map() != nullptr && what.map()->find("chunks") != nullptr)
        read_tensor(*key.text(), *what.map());
    for (const Tensors* tensors :
         {&into_.model_, &into_.masters_, &into_.first_moments_, &into_.second_moments_})
      tensors->check_whole();
  }

 private:
  void find_places(const Map& storage) {
    for (const auto& [index, info] : storage.entries) {
      if (index.map() == nullptr || info.map() == nullptr)
        fail(Kind::data, who_, ": storage_data holds ", index.kind(), " and ", info.kind());
      const Value* offset = index.map()->find("offset");
      Numbers at = offset == nullptr || offset->is_none() ? Numbers() : numbers_of(*offset, who_);
      Place place{.file = text_at(*info.map(), "relative_path", who_),
                  .offset = number_at(*info.map(), "offset", who_),
                  .length = number_at(*info.map(), "length", who_)};
      const Value* packed = info.map()->find("transform_descriptors");
      if (packed != nullptr && !packed->is_none())
        fail(Kind::data, who_, ": ", place.file,
             " is packed by an extension of torch's, which weft does not read");
      places_[{text_at(*index.map(), "fqn", who_), std::move(at)}] = std::move(place);
    }
  }

  std::span<const std::byte> bytes_of(const Place& place) {
    if (place.file.empty() || place.file.find('/') != std::string::npos ||
        place.file.find('\0') != std::string::npos || place.file == "..")
      fail(Kind::data, who_, ": a chunk lies in '", place.file, "', expected a file of the same directory");
    auto& file = files_[place.file];
    std::error_code error;
    if (file == nullptr) {
      if (!std::filesystem::is_regular_file(directory_ / place.file, error))
        fail(Kind::data, who_, ": chunks lie in ", place.file, ", which is not there");
      into_.files_.push_back(std::make_unique<MappedFile>(directory_ / place.file));
      file = into_.files_.back().get();
    }
    return file->bytes(place.offset, place.length);
  }

  const torch::Archive& archive_at(const Place& place, const std::string& key) {
    into_.archives_.push_back(std::make_unique<torch::Archive>(
        bytes_of(place), text((directory_ / place.file).string(), ": ", key)));
    return *into_.archives_.back();
  }

  void read_common() {
    const std::filesystem::path file = directory_ / "common.pt";
    std::error_code error;
    if (std::filesystem::exists(file, error)) {
      into_.files_.push_back(std::make_unique<MappedFile>(file));
      const torch::Archive archive(into_.files_.back()->bytes(), file.string());
      return into_.take_common(archive, file.string());
    }
    const auto found = places_.find({std::string(common_key), {}});
    if (found == places_.end())
      fail(Kind::data, directory_.string(), ": has neither common.pt nor ", common_key,
           ", which say what the model is");
    into_.take_common(archive_at(found->second, std::string(common_key)), who_);
  }

  // Flat buffers of the optimizer, counters and what restores random numbers are nobody's tensors.
  void read_tensor(const std::string& key, const Map& what) {
    const std::pair<std::string_view, Tensors*> states[] = {
        {"optimizer.state.fp32_param.", &into_.masters_},
        {"optimizer.state.param.", &into_.masters_},
        {"optimizer.state.exp_avg.", &into_.first_moments_},
        {"optimizer.state.exp_avg_sq.", &into_.second_moments_}};
    for (const auto& [front, into] : states)
      if (key.starts_with(front)) return read_chunks(*into, key, key.substr(front.size()), what);
    for (const std::string_view other : {"optimizer.", "chained_", "rng_state", "rerun_state_machine_state"})
      if (key.starts_with(other)) return;
    if (key.ends_with("_extra_state")) return;
    read_chunks(into_.model_, key, key, what);
  }

  void read_chunks(Tensors& into, const std::string& key, const std::string& name, const Map& what) {
    const std::string who = text(who_, ": ", key);
    const Numbers whole = numbers_of(member(what, "size", who), who);
    const auto* chunks = member(what, "chunks", who).list();
    if (chunks == nullptr) fail(Kind::data, who, ": its chunks are ", member(what, "chunks", who).kind());
    for (const Value& one : *chunks) {
      if (one.map() == nullptr) fail(Kind::data, who, ": a chunk is ", one.kind());
      const Box box{.from = numbers_of(member(*one.map(), "offsets", who), who),
                    .size = numbers_of(member(*one.map(), "sizes", who), who)};
      const auto place = places_.find({key, box.from});
      if (place == places_.end() || box.from.size() != whole.size() || box.size.size() != whole.size())
        fail(Kind::data, who, ": a chunk has no place in a file");
      const torch::Archive& archive = archive_at(place->second, key);
      const torch::StoredTensor* stored = archive.value().tensor();
      if (stored == nullptr || stored->size != box.size)
        fail(Kind::data, archive_name(place->second, key), ": is ", archive.value().kind(),
             ", expected a tensor as large as its chunk");
      if (!stored->held || !is_float(stored->dtype))
        fail(Kind::data, archive_name(place->second, key), ": is of ", stored->type,
             ", expected float32, bfloat16 "
             "or float16");
      add(into, Key(name), whole, box, {archive, *stored});
    }
  }

  std::string archive_name(const Place& place, const std::string& key) const {
    return text((directory_ / place.file).string(), ": ", key);
  }

  struct Stored {
    const torch::Archive& archive;
    const torch::StoredTensor& tensor;
  };
  void add(Tensors& into, const Key& key, const Numbers& whole, const Box& box, const Stored& stored) {
    const auto front = std::size_t(key.stacked());
    const std::size_t rank = whole.size() - std::min(front, whole.size());
    if (whole.size() < front || rank < 1 || rank > 2)
      fail(Kind::data, who_, ": ", key.at(Numbers(front)), " has ", rank,
           " dimensions of its own, expected 1 or 2");
    if (stored.tensor.elements() == 0 || !stored.tensor.contiguous())
      fail(Kind::data, who_, ": a chunk of ", key.at(Numbers(front)), " is empty, or no block of memory");
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
          fail(Kind::data, who_, ": a chunk of ", key.at(place), " leaves its tensor");
        chunk.first += at[i] * steps[i];
      }
      into.add(key.at(place), shape, chunk);
    });
  }

  Checkpoint& into_;
  std::filesystem::path directory_;
  std::string who_;
  Places places_;
  std::map<std::string, const MappedFile*> files_;
};

void read_sharded(Checkpoint& into, const std::filesystem::path& directory) {
  Sharded(into, directory).read();
}

}  // namespace weft::exchange::megatron
