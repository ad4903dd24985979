// JSON from files that anyone may have written: a name given twice, deep nesting and wrong types are refused.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "weft/tensor/shape.h"

namespace weft::checkpoint {

/// Fails with "WHO: …" unless the text is one JSON object, nested no deeper than `depth`.
nlohmann::json strict_json(std::string_view from, const std::string& who, int depth);
/// One line, or indented by two. Text that is not UTF-8 is refused.
std::string json_text(const nlohmann::json& value, const std::string& who);

/// A member that must be there; `who` says in messages where one is.
const nlohmann::json& member(const nlohmann::json& object, const char* name, const std::string& who);
std::int64_t whole_number(const nlohmann::json& object, const char* name, const std::string& who);
std::string word(const nlohmann::json& object, const char* name, const std::string& who);
/// At most six numbers from 0 on.
Dims whole_numbers(const nlohmann::json& object, const char* name, const std::string& who);
Shape shape(const nlohmann::json& object, const char* name, const std::string& who);

}  // namespace weft::checkpoint
