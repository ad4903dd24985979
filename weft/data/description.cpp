// Descriptions in Python's JSON. Floats and key order are ours to get right; the rest of the text is
// nlohmann's.
#include "weft/data/description.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"

namespace weft::data {
namespace {

using Json = nlohmann::ordered_json;

std::string written(const Json& value, std::size_t depth);

template <class Each>
std::string block(const Json& value, char open, char close, std::size_t depth, const Each& each) {
  if (value.empty()) return {open, close};
  const std::string indent(4 * (depth + 1), ' ');
  std::string out{open};
  for (auto it = value.begin(); it != value.end(); ++it) {
    out += it == value.begin() ? "\n" : ",\n";
    out += indent + each(it);
  }
  return out + "\n" + std::string(4 * depth, ' ') + close;
}

std::string quoted(const Json& value) { return value.dump(-1, ' ', true); }

std::string written(const Json& value, std::size_t depth) {
  if (value.is_number_float()) return python_float(value.get<double>());
  if (value.is_array()) {
    return block(value, '[', ']', depth, [&](const auto& it) { return written(*it, depth + 1); });
  }
  if (value.is_object()) {
    return block(value, '{', '}', depth, [&](const auto& it) {
      return quoted(Json(it.key())) + ": " + written(it.value(), depth + 1);
    });
  }
  return quoted(value);
}

Json parsed(const std::string& text, const char* what) {
  Json value = Json::parse(text, nullptr, false);
  if (!value.is_object()) fail(Kind::usage, what, ": not a JSON object: ", text.substr(0, 80));
  return value;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json matrix_of(const std::optional<SplitMatrix>& matrix) {
  if (!matrix) return nullptr;
  Json out = Json::array();
  for (std::size_t i = 0; i < matrix->size(); ++i) {
    const auto& portion = (*matrix)[i];
    if (!portion) {
      out.push_back(nullptr);
    } else if (i == 0) {
      out.push_back(
          Json::array({0, portion->end}));  // the first bound is the integer that the sum began with
    } else {
      out.push_back(Json::array({portion->begin, portion->end}));
    }
  }
  return out;
}

Json object_of(const Identity& identity) {
  Json object;
  object["class"] = identity.kind;
  object["dataset_path"] = or_null(identity.path);
  object["num_samples"] = or_null(identity.num_samples);
  object["index_split"] = std::string(name(identity.split));
  object["random_seed"] = identity.seed;
  object["sequence_length"] = identity.sequence_length;
  object["split"] = or_null(identity.split_text);
  object["split_matrix"] = matrix_of(identity.matrix);
  object["tokenizer"] = parsed(identity.tokenizer, "the tokenizer's identity");
  if (identity.epochs > 0) object["num_epochs"] = identity.epochs;
  const Json more = parsed(identity.more, "the data set's identity");
  for (const auto& [key, value] : more.items()) object[key] = value;
  return object;
}

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::array<char, 64> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  const std::string shortest(buffer.data(), end);
  const std::size_t e = shortest.find('e');
  const int exponent = std::stoi(shortest.substr(e + 1));
  // Python turns to exponents below 1e-4 and from 1e16 on, and gives them at least two digits, as to_chars
  // does.
  if (exponent < -4 || exponent >= 16) return shortest;
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed).ptr;
  std::string out(buffer.data(), fixed);
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

std::string describe(const Identity& identity) { return written(object_of(identity), 0); }

std::string describe(const BlendIdentity& identity) {
  Json object;
  object["class"] = "BlendedDataset";
  object["datasets"] = Json::array();
  for (const Identity& member : identity.members) object["datasets"].push_back(object_of(member));
  object["split"] = std::string(name(identity.members.front().split));
  object["weights"] = identity.size ? Json(identity.fractions) : Json(identity.sizes);
  object["size"] = or_null(identity.size);
  return written(object, 0);
}

}  // namespace weft::data
