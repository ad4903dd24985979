// Any bytes as a GGUF file, as a SentencePiece model or as a tokenizer.json, by how they begin. They are read
// whole, the file's tokenizer too, or refused with a kind that is the person's.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/exchange/place.h"
#include "weft/base/error.h"
#include "weft/exchange/gguf/model.h"
#include "weft/exchange/gguf/vocabulary.h"

namespace {

namespace fs = std::filesystem;
namespace gguf = weft::exchange::gguf;

fs::path own_folder() {
  fs::path out = weft::exchange::own_folder("weft_fuzz_gguf");
  fs::create_directories(out);
  return out;
}

void write(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary).write(bytes.data(), std::ptrdiff_t(bytes.size()));
}

void read_model(const fs::path& file) {
  const weft::exchange::TheirModel theirs = weft::exchange::read_theirs(file);
  if (theirs.model.layers > 64 || theirs.model.experts.count > 64) return;
  const auto weights = theirs.open();
  std::vector<float> row;
  for (const weft::Recipe& recipe : weights->all()) {
    row.resize(static_cast<std::size_t>(recipe.columns()));
    weights->read(recipe, 0, row);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fs::path folder = own_folder();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (bytes.starts_with('{')) {
      write(folder / "tokenizer.json", bytes);
      (void)gguf::keys_of(gguf::vocabulary_of({.json = folder / "tokenizer.json", .beside = folder}, 64, 3));
    } else if (!bytes.starts_with("GGUF")) {
      gguf::Vocabulary pieces;
      gguf::read_pieces(bytes, "pieces", pieces);
    } else {
      (void)gguf::tokenizer_of(gguf::read_header(std::as_bytes(std::span(bytes)), "file").values, "file");
      write(folder / "m.gguf", bytes);
      read_model(folder / "m.gguf");
    }
  } catch (const weft::Error& error) {
    if (error.kind() != weft::Kind::data && error.kind() != weft::Kind::usage) std::abort();
  }
  return 0;
}
