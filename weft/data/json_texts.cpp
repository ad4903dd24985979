// Reading JSON lines with simdjson, which checks UTF-8 as well; what it refuses is read once more as Python
// reads it, which takes more.
#include "weft/data/json_texts.h"

#include <simdjson.h>

#include <utility>

#include "weft/base/error.h"
#include "weft/data/python_json.h"

namespace weft::data {

struct JsonTexts::Parser {
  simdjson::dom::parser dom;
  simdjson::padded_string padded;
  std::vector<std::vector<std::string>> own;  // of a line that simdjson refused
};

JsonTexts::JsonTexts(std::vector<std::string> keys)
    : keys_(std::move(keys)), parser_(std::make_unique<Parser>()), texts_(keys_.size()) {}
JsonTexts::~JsonTexts() = default;
JsonTexts::JsonTexts(JsonTexts&&) noexcept = default;
JsonTexts& JsonTexts::operator=(JsonTexts&&) noexcept = default;

namespace {

void take(const simdjson::dom::element& value, const std::string& key, std::vector<std::string_view>& texts) {
  simdjson::dom::array list;
  std::string_view sentence;
  if (!value.get(sentence)) {
    texts.push_back(sentence);
  } else if (!value.get(list)) {
    for (const simdjson::dom::element element : list) {
      if (element.get(sentence))
        fail(Kind::data, "key \"", key, "\" is a list with something else than texts");
      texts.push_back(sentence);
    }
  } else {
    fail(Kind::data, "key \"", key, "\" is neither a text nor a list of texts");
  }
}

// The last one, as Python counts; simdjson's own search finds the first.
simdjson::dom::element last_of(const simdjson::dom::object& object, const std::string& key) {
  bool found = false;
  simdjson::dom::element value;
  for (const auto field : object) {
    if (field.key != key) continue;
    value = field.value;
    found = true;
  }
  if (!found) fail(Kind::data, "no key \"", key, "\"");
  return value;
}

}  // namespace

const std::vector<std::vector<std::string_view>>& JsonTexts::read(std::string_view line) {
  // The parser reads a little beyond the text, which a line in the middle of a block has, and the last one
  // has not: so it gets a copy.
  parser_->padded = simdjson::padded_string(line);
  for (auto& texts : texts_) texts.clear();
  simdjson::dom::element root;
  if (const auto error = parser_->dom.parse(parser_->padded).get(root)) {
    if (error == simdjson::UTF8_ERROR || !simdjson::validate_utf8(line.data(), line.size()))
      fail(Kind::data, "not JSON: not UTF-8");
    parser_->own = texts_as_python_reads(line, keys_);
    for (std::size_t k = 0; k < keys_.size(); ++k)
      texts_[k].assign(parser_->own[k].begin(), parser_->own[k].end());
    return texts_;
  }
  simdjson::dom::object object;
  if (root.get(object)) fail(Kind::data, "not a JSON object");
  for (std::size_t k = 0; k < keys_.size(); ++k) take(last_of(object, keys_[k]), keys_[k], texts_[k]);
  return texts_;
}

}  // namespace weft::data
