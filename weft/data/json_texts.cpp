// Reading JSON lines with simdjson, which checks UTF-8 as well.
#include "weft/data/json_texts.h"

#include <simdjson.h>

#include <utility>

#include "weft/base/error.h"

namespace weft::data {

struct JsonTexts::Parser {
  simdjson::dom::parser dom;
  simdjson::padded_string padded;
};

JsonTexts::JsonTexts(std::vector<std::string> keys)
    : keys_(std::move(keys)), parser_(std::make_unique<Parser>()), texts_(keys_.size()) {}
JsonTexts::~JsonTexts() = default;
JsonTexts::JsonTexts(JsonTexts&&) noexcept = default;
JsonTexts& JsonTexts::operator=(JsonTexts&&) noexcept = default;

const std::vector<std::vector<std::string_view>>& JsonTexts::read(std::string_view line) {
  // The parser reads a little beyond the text, which a line in the middle of a block has, and the last one
  // has not: so it gets a copy.
  parser_->padded = simdjson::padded_string(line);
  simdjson::dom::element root;
  if (const auto error = parser_->dom.parse(parser_->padded).get(root)) {
    fail(Kind::data, "not JSON: ", simdjson::error_message(error));
  }
  simdjson::dom::object object;
  if (root.get(object)) fail(Kind::data, "not a JSON object");
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    texts_[k].clear();
    simdjson::dom::element value;
    if (object.at_key(keys_[k]).get(value)) fail(Kind::data, "no key \"", keys_[k], "\"");
    simdjson::dom::array list;
    std::string_view sentence;
    if (!value.get(sentence)) {
      texts_[k].push_back(sentence);
    } else if (!value.get(list)) {
      for (const simdjson::dom::element element : list) {
        if (element.get(sentence))
          fail(Kind::data, "key \"", keys_[k], "\" is a list with something else than texts");
        texts_[k].push_back(sentence);
      }
    } else {
      fail(Kind::data, "key \"", keys_[k], "\" is neither a text nor a list of texts");
    }
  }
  return texts_;
}

}  // namespace weft::data
