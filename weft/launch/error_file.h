// TORCHELASTIC_ERROR_FILE: what a worker says of its own failure, as torchrun's workers do.
#pragma once

#include <filesystem>
#include <string>

namespace weft::launch {

/// The message in it; "" where there is no such file, or it holds something else.
std::string message_in(const std::filesystem::path& error_file);

/// One object, as torchrun reads it; `seconds` since 1970. What cannot be written is left.
void write_error_file(const std::filesystem::path& error_file, const std::string& message, long seconds);

}  // namespace weft::launch
