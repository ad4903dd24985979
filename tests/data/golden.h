// Reads the committed vectors that the original programs made, and the digests they are given as.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

using Json = nlohmann::json;

/// What tests/golden/data/NAME.json holds, or holds under a key: a value, so that a loop may run over it.
Json golden(const std::string& name);
Json golden(const std::string& name, const std::string& key);

std::string sha256_hex(std::string_view bytes);

template <class T>
std::string sha256_of(std::span<const T> values) {
  return sha256_hex({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}
template <class T>
std::string sha256_of(const std::vector<T>& values) {
  return sha256_of(std::span<const T>(values));
}

std::string bytes_of_hex(std::string_view hex);
double double_of_hex(const std::string& hex);  // Python's float.hex()

/// A folder that is there while the test runs.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::string& path);
void write_text(const std::string& path, std::string_view bytes);

}  // namespace weft::data
