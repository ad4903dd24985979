// {"message": {"message": "Type: text", "extraInfo": {"py_callstack": …, "timestamp": "…"}}}
#include "weft/launch/error_file.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace weft::launch {
namespace {

constexpr std::size_t longest = 1 << 20;  // bytes; a worker may write anything

}  // namespace

std::string message_in(const std::filesystem::path& error_file) {
  std::error_code none;
  if (error_file.empty() || !std::filesystem::is_regular_file(error_file, none) ||
      std::filesystem::file_size(error_file, none) > longest)
    return "";
  std::ifstream in(error_file);
  const auto said =
      nlohmann::json::parse(std::string(std::istreambuf_iterator<char>(in), {}), nullptr, false);
  if (!said.is_object() || !said.contains("message")) return "";
  const auto& message = said["message"];
  if (message.is_string()) return message;
  return message.is_object() && message.contains("message") && message["message"].is_string()
             ? message["message"].get<std::string>()
             : "";
}

void write_error_file(const std::filesystem::path& error_file, const std::string& message, long seconds) {
  const nlohmann::json said{
      {"message",
       {{"message", message},
        {"extraInfo", {{"py_callstack", ""}, {"timestamp", std::to_string(seconds)}}}}}};
  std::ofstream out(error_file);
  out << said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

}  // namespace weft::launch
