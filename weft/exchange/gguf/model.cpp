#include "weft/exchange/gguf/model.h"

#include <algorithm>
#include <array>
#include <set>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/exchange/hub_weights.h"

namespace weft::exchange::gguf {
namespace {

namespace fs = std::filesystem;

std::string sizes_as_text(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> words;
  for (const std::int64_t size : sizes) words.push_back(std::to_string(size));
  return text("{", join(words, ", "), "}");
}

/// Some programs leave the last sizes of a tensor out where they are 1.
std::vector<std::int64_t> without_ones(std::vector<std::int64_t> sizes) {
  while (!sizes.empty() && sizes.back() == 1) sizes.pop_back();
  return sizes;
}

void add_ends(const ModelFile& file, Json& out) {
  const Value* end = file.header().values.find("tokenizer.ggml.eos_token_id");
  if (end == nullptr || end->as<std::int64_t>() == nullptr) return;
  out["eos_token_id"] = *end->as<std::int64_t>();
}

std::vector<float> numbers_of(const ModelFile& file, const StoredTensor& tensor) {
  std::vector<float> out(std::size_t(tensor.elements()));
  decode(tensor.type, file.bytes(tensor), 0, out);
  return out;
}

}  // namespace

bool is_gguf_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  File file(path, Open::read);
  std::array<std::byte, 4> front{};
  return file.read(front) == front.size() && begins_as_gguf(front);
}

ModelFile::ModelFile(const fs::path& path)
    : map_(path), who_(path.string()), header_(read_header(map_.bytes(), who_)) {
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) places_[header_.tensors[i].name] = i;
  const Value* files = header_.values.find("split.count");
  if (files == nullptr) return;
  const auto* count = files->as<std::int64_t>();
  if (count == nullptr || *count > 1)
    fail(Kind::data, who_, ": is one of ", count == nullptr ? text("several") : text(*count),
         " files, and weft reads single ones: llama-gguf-split merges them");
}

const StoredTensor* ModelFile::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &header_.tensors[found->second];
}

Contents ModelFile::contents() const {
  return {.who = who_, .values = &header_.values, .sizes = [this](const std::string& name) {
            const StoredTensor* found = find(name);
            return found == nullptr ? nullptr : &found->sizes;
          }};
}

HubConfig config_of(const ModelFile& file) {
  const Value* name = file.header().values.find("general.architecture");
  const std::string* word = name == nullptr ? nullptr : name->as<std::string>();
  if (word == nullptr) fail(Kind::data, file.who(), ": does not say its general.architecture");
  const Architecture& architecture = architecture_named(*word, file.who());
  const Contents contents = file.contents();
  Json theirs = read_settings(architecture, contents);
  if (const StoredTensor* factors = file.find(frequencies_name);
      factors != nullptr && architecture.stretches_by_tensor)
    read_stretched(Keys(contents, *word), numbers_of(file, *factors), theirs);
  add_ends(file, theirs);
  return hub_config_from_json(theirs.dump(), file.who());
}

ModelTensors::ModelTensors(std::shared_ptr<const ModelFile> file, const HubConfig& config)
    : file_(std::move(file)) {
  const std::vector<Recipe> all = recipes(config.type, config.model);
  const std::vector<FileTensor> planned = lay_out(architecture_of_type(config.type), config.model, all);
  check_all(planned);
  for (const FileTensor& tensor : planned) {
    const StoredTensor* stored = file_->find(tensor.name);
    for (const Source& source : tensor.slabs) {
      const Theirs& theirs = source.recipe->parts[source.part];
      located_[theirs.name] = {{theirs.name, dtype_of(stored->type), theirs.shape, 0}, source.placed, stored};
    }
  }
}

void ModelTensors::check_all(const std::vector<FileTensor>& planned) const {
  std::set<std::string> known;
  for (const FileTensor& tensor : planned) {
    const StoredTensor* stored = file_->find(tensor.name);
    if (stored == nullptr)
      fail(Kind::data, who(), ": lacks ", tensor.name, ", which the model that its keys describe has");
    if (without_ones(stored->sizes) != without_ones(tensor.sizes))
      fail(Kind::data, who(), ": ", tensor.name, " is ", sizes_as_text(stored->sizes), ", its keys ask for ",
           sizes_as_text(tensor.sizes));
    known.insert(tensor.name);
  }
  for (const StoredTensor& stored : file_->header().tensors)
    if (!known.contains(stored.name) && stored.name != frequencies_name)
      fail(Kind::data, who(), ": holds ", stored.name,
           ", which is no part of the model that its keys describe");
}

std::vector<std::string> ModelTensors::names() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : located_) out.push_back(name);
  return out;
}

const checkpoint::Entry* ModelTensors::find(const std::string& name) const {
  const auto found = located_.find(name);
  return found == located_.end() ? nullptr : &found->second.entry;
}

// A part of a row of the file's at a time: whoever walks over a turned tensor walks along one, too.
void ModelTensors::read(const std::string& name, const Walk& walk, float* to) const {
  const Located& one = located_.at(name);
  const Placed& placed = one.placed;
  const auto stored = file_->bytes(*one.stored);
  const bool turned = placed.order == Order::turned;
  const std::int64_t theirs = turned ? placed.rows : placed.columns;  // numbers in a row of theirs
  for (std::int64_t i = 0; i < walk.count;) {
    const std::int64_t at = walk.first + i * walk.step;
    const std::int64_t row = turned ? at % theirs : at / theirs, column = turned ? at / theirs : at % theirs;
    const bool along = walk.step == (turned ? theirs : 1);
    const std::int64_t now = along ? std::min(walk.count - i, placed.columns - column) : 1;
    decode(one.stored->type, stored, row_in_file(placed, row) * placed.columns + column,
           {to + i, std::size_t(now)});
    if (placed.plus != 0)
      for (float& value : std::span(to + i, std::size_t(now))) value -= placed.plus;
    i += now;
  }
}

bool ModelTensors::same(const std::string& a, const std::string& b) const {
  return std::ranges::equal(bytes(a), bytes(b));
}

std::span<const std::byte> ModelTensors::bytes(const std::string& name) const {
  return file_->bytes(*located_.at(name).stored);
}

TheirModel model_of(const fs::path& path) {
  const auto file = std::make_shared<const ModelFile>(path);
  const HubConfig config = config_of(*file);
  return {.program = Program::llama_cpp,
          .model = config.model,
          .hub = config,
          .says = text(path.string(), ": its keys"),
          .tokenizer = path,
          .notices = config.notices,
          .open = [file, config] {
            return std::make_unique<HubWeights>(std::make_shared<const ModelTensors>(file, config), config);
          }};
}

}  // namespace weft::exchange::gguf
