#include "weft/exchange/gguf/write.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/number.h"
#include "weft/exchange/gguf/header.h"
#include "weft/exchange/gguf/layout.h"
#include "weft/exchange/hub_parts.h"

namespace weft::exchange::gguf {
namespace {

constexpr std::int64_t quantization_version = 2;

/// A number type that the tensor's rows can have: the converter of llama.cpp takes f16 where blocks do not
/// fit.
NumberType type_of(const FileTensor& tensor, NumberType wanted) {
  if (tensor.always_f32()) return NumberType::f32;
  return tensor.sizes.front() % unit_of(wanted) == 0 ? wanted : NumberType::f16;
}

class FileWriter {
 public:
  FileWriter(const ModelConfig& model, const FileForm& form)
      : form_(form),
        theirs_(Json::parse(hub_config_json(model, Dtype::f32, {}))),
        type_(theirs_.at("model_type").get<std::string>()),
        architecture_(architecture_of_type(type_)),
        recipes_(recipes(type_, model)),
        tensors_(lay_out(architecture_, model, recipes_)) {
    add_keys();
    add_stored();
    must_say_all();
  }

  Written write(const std::filesystem::path& path, const ReadWeight& read) {
    Written out{.tensors = std::ssize(stored_), .files = 1};
    write_atomically(path, [&](File& file) {
      file.write(std::string_view(header_bytes(values_, stored_)));
      HubParts parts(read);
      for (std::size_t i = 0; i < stored_.size(); ++i) {
        pad_to(file, stored_[i].at);
        i < tensors_.size() ? put(tensors_[i], stored_[i], parts, file) : put_frequencies(file);
        out.bytes += stored_[i].bytes;
      }
      pad_to(file, round_up(file.at(), usual_alignment));
    });
    return out;
  }

 private:
  void add_keys() {
    (void)values_.add("general.architecture", text_of(std::string(architecture_.name)));
    (void)values_.add("general.type", text_of("model"));
    if (!form_.name.empty()) (void)values_.add("general.name", text_of(form_.name));
    write_settings(architecture_, theirs_, values_);
    (void)values_.add("general.file_type", whole(file_type_of(form_.type)));
    (void)values_.add("general.quantization_version", whole(quantization_version));
    for (const auto& [key, value] : form_.vocabulary.all()) (void)values_.add(key, value);
  }

  void add_stored() {
    for (const FileTensor& tensor : tensors_)
      stored_.push_back({.name = tensor.name, .sizes = tensor.sizes, .type = type_of(tensor, form_.type)});
    const auto rotary = llama3_of(theirs_);
    if (!rotary || !architecture_.stretches_by_tensor) return;
    frequencies_ = stretched_by(*rotary, theirs_.at("head_dim").get<std::int64_t>());
    stored_.push_back({.name = frequencies_name, .sizes = {std::ssize(frequencies_)}});
  }

  /// What a file of these keys and tensors is read as must be the model: what is lost has no word there.
  void must_say_all() const {
    const std::string who = "the GGUF file";
    const Contents contents{.who = who, .values = &values_, .sizes = [&](const std::string& name) {
                              const auto found = std::ranges::find(stored_, name, &StoredTensor::name);
                              return found == stored_.end() ? nullptr : &found->sizes;
                            }};
    Json said = read_settings(architecture_, contents);
    if (!frequencies_.empty())
      read_stretched(Keys(contents, std::string(architecture_.name)), frequencies_, said);
    const ModelConfig model = hub_config_from_json(theirs_.dump(), who).model;
    if (const auto apart = disagreement(model, hub_config_from_json(said.dump(), who).model))
      fail(Kind::usage, "llama.cpp's ", architecture_.name, " has no word for ", apart->path, " ", apart->run,
           " of the model, and would compute ", apart->theirs, "; Hugging Face's form holds it");
  }

  void put(const FileTensor& tensor, const StoredTensor& stored, HubParts& parts, File& file) const {
    for (const Source& slab : tensor.slabs) {
      const std::vector<float> theirs = parts.values(*slab.recipe, slab.part);
      const Placed& placed = slab.placed;
      std::vector<float> ours(theirs.size());
      for (std::int64_t row = 0; row < placed.rows; ++row) {
        float* to = ours.data() + (row_in_file(placed, row) - placed.slab * placed.rows) * placed.columns;
        for (std::int64_t column = 0; column < placed.columns; ++column)
          to[column] = theirs[std::size_t(placed.order == Order::turned ? column * placed.rows + row
                                                                        : row * placed.columns + column)];
      }
      if (placed.plus != 0)  // minus zero stays
        for (float& value : ours) value += placed.plus;
      file.write(encode(stored.type, ours, stored.name));
    }
  }

  void put_frequencies(File& file) const { file.write(std::as_bytes(std::span(frequencies_))); }

  static void pad_to(File& file, std::int64_t at) {
    const std::array<std::byte, usual_alignment> zeros{};
    file.write(std::span(zeros).first(std::size_t(at - file.at())));
  }

  const FileForm& form_;
  Json theirs_;
  std::string type_;
  const Architecture& architecture_;
  std::vector<Recipe> recipes_;
  std::vector<FileTensor> tensors_;
  std::vector<float> frequencies_;
  Values values_;
  std::vector<StoredTensor> stored_;
};

}  // namespace

std::set<std::string, std::less<>> kept_in_f32(const ModelConfig& model) {
  const std::string type(type_for(model));
  const std::vector<Recipe> all = recipes(type, model);
  std::set<std::string, std::less<>> out;
  for (const FileTensor& tensor : lay_out(architecture_of_type(type), model, all))
    if (tensor.always_f32())
      for (const Source& one : tensor.slabs) out.insert(one.recipe->name);
  return out;
}

Written write_model(const std::filesystem::path& file, const ModelConfig& model, const ReadWeight& read,
                    const FileForm& form) {
  return FileWriter(model, form).write(file, read);
}

}  // namespace weft::exchange::gguf
