// A GGUF file as a model of another program's.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/exchange/gguf/header.h"
#include "weft/exchange/gguf/layout.h"
#include "weft/exchange/hub_source.h"
#include "weft/exchange/their_model.h"

namespace weft::exchange::gguf {

/// Whether it is a file that begins as one of GGUF does.
bool is_gguf_file(const std::filesystem::path& path);

/// A file, mapped: a tensor's bytes are read when they are touched.
class ModelFile {
 public:
  /// Fails with Kind::data where it is no such file, or one of several.
  explicit ModelFile(const std::filesystem::path& path);

  const std::string& who() const { return who_; }
  const Header& header() const { return header_; }
  const StoredTensor* find(const std::string& name) const;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const {
    return map_.bytes(tensor.at, tensor.bytes);
  }
  Contents contents() const;

 private:
  MappedFile map_;
  std::string who_;
  Header header_;
  std::map<std::string, std::size_t> places_;
};

/// What config.json would say of it.
HubConfig config_of(const ModelFile& file);

/// A file's tensors by Hugging Face's names, in the order of their rows.
class ModelTensors final : public HubSource {
 public:
  /// Fails with Kind::data, naming the tensor, where the file lacks one, has another or one of another shape.
  ModelTensors(std::shared_ptr<const ModelFile> file, const HubConfig& config);

  std::string who() const override { return file_->who(); }
  std::vector<std::string> names() const override;
  const std::vector<std::string>& others() const override { return others_; }
  const checkpoint::Entry* find(const std::string& name) const override;
  void read(const std::string& name, const Walk& walk, float* to) const override;
  bool same(const std::string& a, const std::string& b) const override;
  std::span<const std::byte> bytes(const std::string& name) const override;

 private:
  struct Located {
    checkpoint::Entry entry;
    Placed placed;
    const StoredTensor* stored = nullptr;
  };
  void check_all(const std::vector<FileTensor>& planned) const;
  std::shared_ptr<const ModelFile> file_;
  std::map<std::string, Located> located_;
  std::vector<std::string> others_;
};

TheirModel model_of(const std::filesystem::path& file);

}  // namespace weft::exchange::gguf
