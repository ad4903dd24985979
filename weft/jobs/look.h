// Words in a tree, by their path: "metadata/name". What is not there is empty.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/tree.h"

namespace weft::jobs {

const Tree* at(const Tree& from, std::string_view path);  // null: nothing is there
std::string word_at(const Tree& from, std::string_view path);
std::int64_t number_at(const Tree& from, std::string_view path);
std::vector<const Tree*> items_at(const Tree& from, std::string_view path);

}  // namespace weft::jobs
