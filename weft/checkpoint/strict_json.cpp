// The parser is nlohmann's; what it would let pass is caught on the way.
#include "weft/checkpoint/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "weft/base/error.h"

namespace weft::checkpoint {
namespace {

using nlohmann::json;

// Sees every event of the parser, so that nothing large is built from what will be refused.
class Watch {
 public:
  Watch(std::string who, int depth) : who_(std::move(who)), depth_(depth) {}

  bool operator()(int, json::parse_event_t event, json& value) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (++nested_ > depth_)
          fail(Kind::data, who_, ": its JSON is nested more than the ", depth_, " levels expected");
        names_.emplace_back();
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        --nested_;
        names_.pop_back();
        break;
      case json::parse_event_t::key:
        if (!names_.back().insert(value.get<std::string>()).second)
          fail(Kind::data, who_, ": its JSON names ", value.dump(), " twice");
        break;
      case json::parse_event_t::value:
        break;
    }
    return true;
  }

 private:
  std::string who_;
  int depth_;
  int nested_ = 0;
  std::vector<std::set<std::string>> names_;
};

}  // namespace

json strict_json(std::string_view from, const std::string& who, int depth) {
  json out;
  Watch watch(who, depth);
  try {
    out = json::parse(from.begin(), from.end(), [&](int at, json::parse_event_t event, json& value) {
      return watch(at, event, value);
    });
  } catch (const json::parse_error& error) {
    fail(Kind::data, who, ": not JSON from byte ", error.byte, " on");
  } catch (const json::exception&) {
    fail(Kind::data, who, ": its JSON holds a number that is too large");
  }
  if (!out.is_object()) fail(Kind::data, who, ": its JSON is ", out.type_name(), ", expected an object");
  return out;
}

std::string json_text(const json& value, const std::string& who) {
  try {
    return value.dump(1, ' ');
  } catch (const json::exception&) {
    fail(Kind::usage, who, ": holds text that is not UTF-8, which JSON cannot say");
  }
}

const json& member(const json& object, const char* name, const std::string& who) {
  if (!object.is_object()) fail(Kind::data, who, ": ", object.type_name(), ", expected an object");
  const auto found = object.find(name);
  if (found == object.end()) fail(Kind::data, who, ": has no \"", name, "\"");
  return *found;
}

std::int64_t whole_number(const json& object, const char* name, const std::string& who) {
  const json& value = member(object, name, who);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
    fail(Kind::data, who, ": \"", name, "\" is ", value.dump(), ", expected a whole number from 0 on");
  return value.get<std::int64_t>();
}

std::string word(const json& object, const char* name, const std::string& who) {
  const json& value = member(object, name, who);
  if (!value.is_string())
    fail(Kind::data, who, ": \"", name, "\" is ", value.type_name(), ", expected a text");
  return value.get<std::string>();
}

Dims whole_numbers(const json& object, const char* name, const std::string& who) {
  const json& value = member(object, name, who);
  if (!value.is_array())
    fail(Kind::data, who, ": \"", name, "\" is ", value.type_name(), ", expected a list");
  if (value.size() > std::size_t{Dims::max_rank}) {
    fail(Kind::data, who, ": \"", name, "\" has ", value.size(), " dimensions, at most ", Dims::max_rank,
         " are supported");
  }
  Dims dims;
  for (const json& dim : value) {
    if (!dim.is_number_unsigned() || dim.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
      fail(Kind::data, who, ": \"", name, "\" holds ", dim.dump(), ", expected whole numbers from 0 on");
    dims.push_back(dim.get<std::int64_t>());
  }
  return dims;
}

Shape shape(const json& object, const char* name, const std::string& who) {
  const Dims dims = whole_numbers(object, name, who);
  try {
    return Shape(dims);
  } catch (const Error& error) {
    fail(Kind::data, who, ": \"", name, "\": ", error.what());
  }
}

}  // namespace weft::checkpoint
