// What the tokenizer verb reads and writes: lines of text and of JSON. And its halves that lie in files of
// their own.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/cli/verb.h"
#include "weft/text/tokenizer.h"

namespace weft::cli {

/// For messages: "corpus.jsonl: line 7".
struct LinePlace {
  std::string file;
  std::int64_t line = 0;
};

/// Fails with what f() fails with, and says where.
template <class F>
auto located(const LinePlace& place, const F& f) {
  try {
    return f();
  } catch (const Error& e) {
    fail(e.kind(), place.file, ": line ", place.line, ": ", e.what());
  }
}

/// Calls `each` with every line that is not empty; "-" is standard input. A file that is gzip or zstd is
/// unpacked, whatever its name.
void each_line(const std::string& file, const std::function<void(const LinePlace&, std::string_view)>& each);
[[nodiscard]] std::string whole_input(const std::string& file);

/// The text under `key` in a line of JSON.
[[nodiscard]] std::string text_in(std::string_view line, std::string_view key, const LinePlace& place);
/// {"ids": […]}, or only the list.
[[nodiscard]] std::vector<std::int32_t> ids_in(std::string_view line, const LinePlace& place);
/// Numbers with white space or commas between.
[[nodiscard]] std::vector<std::int32_t> plain_ids_in(std::string_view text);

/// Standard output, written in large parts.
class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();
  void raw(std::string_view text);
  void plain_ids(std::span<const std::int32_t> ids);
  void ids_line(std::span<const std::int32_t> ids);
  void text_line(std::string_view text, std::string_view key);
  void inspect_json(const Tokenizer& tokenizer, std::span<const std::pair<std::string, std::int32_t>> special,
                    std::span<const std::int32_t> ids);

 private:
  void numbers(std::span<const std::int32_t> ids, std::string_view between);
  void flush();
  std::string held_;
};

int train_tokenizer(Args args);
[[nodiscard]] Topic train_topic();
int chat_tokenizer(Args args);
[[nodiscard]] Topic chat_topic();

}  // namespace weft::cli
