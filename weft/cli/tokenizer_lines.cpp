#include "weft/cli/tokenizer_lines.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/data/byte_stream.h"

namespace weft::cli {

using nlohmann::json;

namespace {

json parsed(std::string_view line, const LinePlace& place) {
  try {
    return json::parse(line);
  } catch (const json::exception& error) {
    fail(Kind::data, place.file, ": line ", place.line, " is not JSON: ", error.what());
  }
}

/// Fills a buffer, and says with how much: 0 at the end.
using ReadBytes = std::function<std::size_t(std::span<std::byte>)>;

ReadBytes reader_of(std::istream& in) {
  return [&in](std::span<std::byte> to) {
    in.read(reinterpret_cast<char*>(to.data()), std::ssize(to));
    return std::size_t(in.gcount());
  };
}

// A pipe cannot be looked into before it is read, so only files are unpacked.
ReadBytes reader_of(const std::string& file) {
  if (file == "-") return reader_of(std::cin);
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error))
    return [stream = std::shared_ptr(data::open_stream(file))](std::span<std::byte> to) {
      return stream->read(to);
    };
  const auto opened = std::make_shared<std::ifstream>(file, std::ios::binary);
  if (!*opened) fail_errno("open", file, errno);
  return [opened, read = reader_of(*opened)](std::span<std::byte> to) { return read(to); };
}

std::size_t read_more(std::string& text, const ReadBytes& read) {
  constexpr std::size_t at_once = std::size_t{1} << 20;
  const std::size_t before = text.size();
  text.resize(before + at_once);
  const std::size_t count = read(std::as_writable_bytes(std::span(text).subspan(before)));
  text.resize(before + count);
  return count;
}

}  // namespace

void each_line(const std::string& file, const std::function<void(const LinePlace&, std::string_view)>& each) {
  const auto read = reader_of(file);
  LinePlace place{file == "-" ? "standard input" : file, 0};
  const auto tell = [&](std::string_view line) {
    ++place.line;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) each(place, line);
  };
  std::string held;  // from the beginning of a line on
  for (std::size_t more = 1; more > 0;) {
    const std::size_t before = held.size();
    more = read_more(held, read);
    std::size_t begin = 0;
    for (std::size_t end = held.find('\n', before); end != std::string::npos; end = held.find('\n', begin)) {
      tell(std::string_view(held).substr(begin, end - begin));
      begin = end + 1;
    }
    held.erase(0, begin);
  }
  if (!held.empty()) tell(held);
}

std::string whole_input(const std::string& file) {
  const auto read = reader_of(file);
  std::string all;
  while (read_more(all, read) > 0) {
  }
  return all;
}

std::string text_in(std::string_view line, std::string_view key, const LinePlace& place) {
  json object = parsed(line, place);
  const auto at = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || at == object.end() || !at->is_string()) {
    fail(Kind::data, place.file, ": line ", place.line, " holds no text under '", key, "'");
  }
  return std::move(at->get_ref<std::string&>());
}

std::vector<std::int32_t> ids_in(std::string_view line, const LinePlace& place) {
  const json value = parsed(line, place);
  const json& list = value.is_object() && value.contains("ids") ? value["ids"] : value;
  try {
    return list.get<std::vector<std::int32_t>>();
  } catch (const json::exception&) {
    fail(Kind::data, place.file, ": line ", place.line, " holds no list of numbers under 'ids'");
  }
}

std::vector<std::int32_t> plain_ids_in(std::string_view text) {
  constexpr std::string_view between = " \t\r\n,[]";
  std::vector<std::int32_t> ids;
  for (auto at = text.find_first_not_of(between); at != std::string_view::npos;
       at = text.find_first_not_of(between, at)) {
    const auto end = std::min(text.find_first_of(between, at), text.size());
    std::int32_t id = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end) {
      fail(Kind::usage, "tokenizer decode: '", text.substr(at, end - at), "' is not an id");
    }
    ids.push_back(id);
    at = end;
  }
  return ids;
}

Output::~Output() { flush(); }

void Output::flush() {
  std::cout.write(held_.data(), static_cast<std::streamsize>(held_.size()));
  std::cout.flush();
  held_.clear();
}

void Output::raw(std::string_view text) {
  held_.append(text);
  if (held_.size() > (1 << 20)) flush();
}

void Output::numbers(std::span<const std::int32_t> ids, std::string_view between) {
  char digits[16];
  bool first = true;
  for (const std::int32_t id : ids) {
    if (!first) held_.append(between);
    first = false;
    held_.append(digits, std::to_chars(digits, digits + sizeof digits, id).ptr);
  }
}

void Output::plain_ids(std::span<const std::int32_t> ids) {
  numbers(ids, " ");
  raw("\n");
}

void Output::ids_line(std::span<const std::int32_t> ids) {
  held_.append("{\"ids\": [");
  numbers(ids, ", ");
  raw("]}\n");
}

void Output::text_line(std::string_view text, std::string_view key) { raw(json{{key, text}}.dump() + "\n"); }

void Output::inspect_json(const Tokenizer& tokenizer,
                          std::span<const std::pair<std::string, std::int32_t>> special,
                          std::span<const std::int32_t> ids) {
  json parts = json::object(), pieces = json::array();
  for (const auto& [part, id] : special) parts[part] = id;
  for (const std::int32_t id : ids) pieces.push_back({{"id", id}, {"token", tokenizer.token(id)}});
  const json out{{"vocabulary", tokenizer.size()},
                 {"padded", padded_vocabulary(tokenizer.size())},
                 {"special", parts},
                 {"pieces", pieces}};
  raw(out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace weft::cli
