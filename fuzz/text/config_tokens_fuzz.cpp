// What lies beside a tokenizer.json from anybody: up to three files, a line of "--" between them.
#include <string>

#include "fuzz/text/use.h"
#include "weft/text/huggingface.h"

namespace {

constexpr const char* words = R"({
  "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1, "b": 2, "</s>": 3}},
  "normalizer": {"type": "Lowercase"}, "added_tokens": [{"id": 4, "content": "<t>"}]})";

std::string next_file(std::string& rest) {
  const auto end = rest.find("\n--\n");
  const std::string file = rest.substr(0, end);
  rest = end == std::string::npos ? "" : rest.substr(end + 4);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string rest(reinterpret_cast<const char*>(data), size);
  weft::HuggingFaceFiles files{.tokenizer = words};
  files.config = next_file(rest);
  files.special = next_file(rest);
  files.added = next_file(rest);
  weft::open_and_use([&] { return weft::make_huggingface(files, {}); }, weft::sample);
  return 0;
}
