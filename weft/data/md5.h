// MD5, because that is how cache files are named. Nothing here is secret.
#pragma once

#include <string>
#include <string_view>

namespace weft::data {

/// 32 lower-case hexadecimal digits.
std::string md5_hex(std::string_view bytes);

}  // namespace weft::data
