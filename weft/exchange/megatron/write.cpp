#include "weft/exchange/megatron/write.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "weft/base/error.h"
#include "weft/exchange/megatron/arguments_write.h"
#include "weft/exchange/megatron/family.h"
#include "weft/exchange/megatron/index_write.h"
#include "weft/exchange/megatron/keys.h"
#include "weft/exchange/torch/pickle.h"
#include "weft/exchange/torch/zip_write.h"
#include "weft/model/kinds.h"

namespace weft::exchange::megatron {
namespace {

namespace fs = std::filesystem;
using torch::pickled;

/// Numbers of the type that they are written in.
std::vector<std::byte> rounded(std::span<const float> values, Dtype dtype) {
  std::vector<std::byte> out(values.size() * std::size_t(size_of(dtype)));
  visit_float(dtype, [&]<class T>() {
    T* to = reinterpret_cast<T*>(out.data());
    for (const float value : values) *to++ = T(value);
  });
  return out;
}

class ReleaseWriter {
 public:
  ReleaseWriter(fs::path directory, const ModelConfig& model, const ReleaseForm& form)
      : directory_(std::move(directory)), model_(model), form_(form) {}

  Written write(const ReadWeight& read) {
    const ParameterList list = kind_of(model_).parameters(model_);
    for (const WholeParameter& ours : list.all()) {
      Recipe recipe{.name = ours.name, .shape = ours.shape, .parts = {}, .runs = {}};
      add(ours, read(recipe));
    }
    close();
    write_atomically(directory_ / ".metadata", std::string_view(index_.pickle()));
    out_.tensors = index_.tensors();
    return out_;
  }

 private:
  void add(const WholeParameter& ours, std::vector<float> values) {
    const std::vector<std::string> names = their_names(ours.name, model_);
    if (names.empty()) fail(Kind::internal, "Megatron-LM has no name for ", ours.name);
    const Place place = place_of(names.front(), model_);
    std::vector<std::int64_t> whole;
    for (int i = 0; i < ours.shape.rank(); ++i) whole.push_back(ours.shape[i]);
    if (ours.name == "embedding.words" || ours.name == "output.words") {
      const std::int64_t columns = std::ssize(values) / whole[0];
      whole[0] = padded_rows(model_);
      values.resize(std::size_t(whole[0] * columns));
    }
    const Dtype dtype = is_always_f32(place.key) ? Dtype::f32 : form_.dtype;
    const std::int64_t row = std::ssize(values) / whole[0];
    const std::int64_t most = std::max<std::int64_t>(1, torch::most_record_bytes / (row * size_of(dtype)));
    for (std::int64_t first = 0; first < whole[0]; first += most) {
      const std::int64_t rows = std::min(most, whole[0] - first);
      add_part(Part{place, dtype, whole, first, rows},
               std::span(values).subspan(std::size_t(first * row), std::size_t(rows * row)));
    }
    const std::string nothing = torch::pickle_of(torch::list_of({pickled(torch::Value())}));
    for (const std::string& key : extra_states_of(place)) index_.add_object(key, stream(nothing, {}));
  }

  /// Rows of one of ours, which may be one layer's of what Megatron has of all.
  struct Part {
    const Place& place;
    Dtype dtype;
    const std::vector<std::int64_t>& whole;
    std::int64_t first, rows;
  };
  void add_part(const Part& part, std::span<const float> values) {
    std::vector<std::int64_t> offsets = part.place.at, sizes(part.place.at.size(), 1),
                              whole = part.place.counts;
    whole.insert(whole.end(), part.whole.begin(), part.whole.end());
    offsets.resize(whole.size(), 0);
    offsets[part.place.at.size()] = part.first;
    sizes.insert(sizes.end(), part.whole.begin(), part.whole.end());
    sizes[part.place.at.size()] = part.rows;
    const auto bytes = rounded(values, part.dtype);
    index_.add({.key = part.place.key, .dtype = part.dtype, .whole = whole},
               {.offsets = offsets,
                .sizes = sizes,
                .stream = stream(torch::pickle_of(torch::tensor_of(part.dtype, sizes)), bytes)});
    out_.bytes += std::ssize(bytes);
  }

  /// In the file that is being written, or the next where that would be too large.
  Index::Stream stream(std::string_view pickle, std::span<const std::byte> storage) {
    if (file_ && file_->at() + std::ssize(storage) > form_.file_bytes) close();
    if (!file_) file_ = std::make_unique<File>(directory_ / file_name(), Open::create);
    const std::int64_t at = file_->at();
    return {.file = file_name(), .at = at, .bytes = torch::write_archive(*file_, pickle, storage)};
  }

  std::string file_name() const { return "__0_" + std::to_string(out_.files) + ".distcp"; }
  void close() {
    if (!file_) return;
    file_->sync();
    file_->close();
    file_.reset();
    ++out_.files;
  }

  fs::path directory_;
  const ModelConfig& model_;
  const ReleaseForm& form_;
  std::unique_ptr<File> file_;
  Index index_;
  Written out_;
};

void write_common(const fs::path& directory, torch::Map arguments) {
  const torch::Opcodes how = torch::fields_of(
      {{"singleton_local_shards", pickled(false)}, {"chained_optim_avoid_prefix", pickled(true)}});
  const std::string pickle =
      torch::pickle_of(torch::fields_of({{"args", pickled(torch::Value(std::move(arguments)))},
                                         {"checkpoint_version", pickled(3.0)},
                                         {"iteration", pickled(std::int64_t{0})},
                                         {"num_floating_point_operations_so_far", pickled(std::int64_t{0})},
                                         {"content_metadata", how}}));
  File file(directory / "common.pt", Open::create);
  torch::write_archive(file, pickle);
  file.sync();
  file.close();
}

constexpr std::string_view forms =
    R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch", "common_backend_version": 1})";

}  // namespace

bool is_always_f32(std::string_view name) { return name.ends_with("expert_bias"); }

fs::path release_directory(const fs::path& directory) { return directory / "release"; }

Written write_release(const fs::path& directory, const ModelConfig& model, const ReadWeight& read,
                      const ReleaseForm& form) {
  if (model.kind != name_of(Family::gpt))
    fail(Kind::usage, "weft writes GPTs in Megatron's form, and this is a ", model.kind,
         "; checkpoints of weft and of Hugging Face can hold it");
  torch::Map arguments = arguments_of(model, form.dtype);
  const fs::path release = release_directory(directory);
  make_directories(release);
  const Written out = ReleaseWriter(release, model, form).write(read);
  write_common(release, std::move(arguments));
  write_atomically(release / "metadata.json", forms);
  write_atomically(directory / "latest_checkpointed_iteration.txt", std::string_view("release"));
  return out;
}

}  // namespace weft::exchange::megatron
