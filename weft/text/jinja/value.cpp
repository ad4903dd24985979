#include "weft/text/jinja/value.h"

#include "weft/text/jinja/work.h"

namespace weft::jinja {

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : pairs)
    if (const Text* text = name.text(); text != nullptr && text->bytes == key) return &value;
  return nullptr;
}

bool is_whole(const Value& value) { return value.flag() || std::holds_alternative<std::int64_t>(value.held); }

bool is_number(const Value& value) { return is_whole(value) || std::holds_alternative<double>(value.held); }

std::int64_t as_whole(const Value& whole) {
  if (const bool* flag = std::get_if<bool>(&whole.held)) return *flag ? 1 : 0;
  return std::get<std::int64_t>(whole.held);
}

double as_double(const Value& number) {
  if (const double* value = std::get_if<double>(&number.held)) return *value;
  return static_cast<double>(as_whole(number));
}

std::string_view bytes_of(const Value& value) {
  const Text* text = value.text();
  return text != nullptr ? std::string_view(text->bytes) : std::string_view();
}

bool truth(const Value& value) {
  if (value.undefined() || value.none()) return false;
  if (is_whole(value)) return as_whole(value) != 0;
  if (is_number(value)) return as_double(value) != 0;
  if (const Text* text = value.text()) return !text->bytes.empty();
  if (const Sequence* list = value.sequence()) return list->form == Form::stream || !list->items.empty();
  if (const Dict* dict = value.dict()) return !dict->pairs.empty();
  return true;
}

const char* kind(const Value& value) {
  if (value.undefined()) return "something undefined";
  if (value.none()) return "none";
  if (value.flag()) return "true or false";
  if (is_whole(value)) return "a whole number";
  if (is_number(value)) return "a number";
  if (value.text() != nullptr) return "a text";
  if (value.dict() != nullptr) return "a dict";
  if (const Sequence* list = value.sequence()) {
    constexpr const char* names[] = {"a list",   "a tuple",       "a tuple",         "a range",
                                     "a stream", "a dict's keys", "a dict's values", "a dict's items"};
    return names[static_cast<int>(list->form)];
  }
  return value.object()->kind();
}

int depth(const Value& value) {
  if (const Sequence* list = value.sequence()) return list->depth;
  if (const Dict* dict = value.dict()) return dict->depth;
  return value.object() != nullptr ? value.object()->depth() : 0;
}

}  // namespace weft::jinja
