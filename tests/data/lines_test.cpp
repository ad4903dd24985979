#include "weft/data/lines.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/data/golden.h"
#include "tests/data/pack.h"
#include "tests/data/refusal.h"
#include "weft/data/json_texts.h"
#include "weft/data/sentences.h"

using namespace weft;
using namespace weft::data;

namespace {

std::vector<std::string> lines_of(const std::vector<std::filesystem::path>& files) {
  LineReader reader(files);
  LineBlock block;
  std::vector<std::string> lines;
  while (reader.next(block)) {
    EXPECT_EQ(block.index, static_cast<std::int64_t>(lines.size()));
    for (std::size_t i = 0; i < block.size(); ++i) lines.emplace_back(block.line(i));
  }
  EXPECT_EQ(reader.progress(), 1.0);
  return lines;
}

// Numbered lines of growing length: some megabytes, many blocks.
std::string many_lines() {
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += std::to_string(i) + std::string(static_cast<std::size_t>(i % 700), 'x') + "\n";
  return text;
}

std::string said_of_json(std::string_view line) {
  return refusal([&] { JsonTexts({"text"}).read(line); });
}

}  // namespace

TEST(Lines, come_out_of_plain_gzip_and_zstd_files_alike) {
  const TestFolder folder;
  const std::string text = many_lines();
  write_text(folder / "plain", text);
  write_text(folder / "gz", gzipped(text));
  write_text(folder / "zst", zstandard(text));
  const auto plain = lines_of({folder / "plain"});
  EXPECT_EQ(plain.size(), 3000U);
  EXPECT_EQ(plain[2999], "2999" + std::string(199, 'x'));
  EXPECT_EQ(lines_of({folder / "gz"}), plain);
  EXPECT_EQ(lines_of({folder / "zst"}), plain);
}

TEST(Lines, go_on_over_streams_in_one_file_and_over_files) {
  const TestFolder folder;
  write_text(folder / "a", gzipped("one\ntw") + gzipped("o\n") + gzipped("three"));
  write_text(folder / "b", zstandard("four\n") + zstandard("five\n"));
  write_text(folder / "c", "");
  write_text(folder / "d", "six\r\n\nseven\n");
  EXPECT_EQ(lines_of({folder / "a", folder / "b", folder / "c", folder / "d"}),
            (std::vector<std::string>{"one", "two", "three", "four", "five", "six", "", "seven"}));
}

TEST(Lines, know_their_file_and_number) {
  const TestFolder folder;
  write_text(folder / "a", "1\n2\n");
  write_text(folder / "b", "1\n");
  LineReader reader({folder / "a", folder / "b"});
  LineBlock block;
  ASSERT_TRUE(reader.next(block));
  ASSERT_TRUE(reader.next(block));
  EXPECT_EQ(block.file, folder / "b");
  EXPECT_EQ(block.first, 1);
  EXPECT_EQ(block.index, 2);
}

TEST(Lines, longer_than_a_block_are_whole) {
  const TestFolder folder;
  const std::string line(3000000, 'y');
  write_text(folder / "a", "x\n" + line + "\nz\n");
  EXPECT_EQ(lines_of({folder / "a"}), (std::vector<std::string>{"x", line, "z"}));
}

TEST(Lines, of_a_damaged_file_are_refused_with_the_place) {
  const TestFolder folder;
  const std::string packed = gzipped(many_lines());
  const auto said = [&](const std::string& bytes) {
    write_text(folder / "a", bytes);
    return refusal([&] { lines_of({folder / "a"}); }).substr((folder / "a").size());
  };
  EXPECT_EQ(said(packed.substr(0, packed.size() - 9)), text(": the packed data ends in the middle near byte ",
                                                            packed.size() - 9, " of ", packed.size() - 9));
  std::string broken = packed;
  broken[packed.size() - 6] = static_cast<char>(broken[packed.size() - 6] ^ 1);
  EXPECT_EQ(said(broken).substr(0, 29), ": the gzip data is damaged ne");
  const std::string small = zstandard("hello\nhello\n");
  EXPECT_EQ(said(small.substr(0, small.size() - 1)), text(": the packed data ends in the middle near byte ",
                                                          small.size() - 1, " of ", small.size() - 1));
  EXPECT_EQ(said("\x28\xb5\x2f\xfd" + std::string(40, '\xff')).substr(0, 29),
            ": the zstd data is damaged ne");
}

TEST(Lines, of_any_damaged_packed_file_end_or_are_refused) {
  const TestFolder folder;
  const std::string packed[] = {gzipped("some text\nmore text\n"), zstandard("some text\nmore text\n")};
  EXPECT_TRUE(rc::check([&](std::uint8_t value, bool which) {
    std::string bytes = packed[which];
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = static_cast<char>(value);
    bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
    write_text(folder / "x", bytes);
    try {
      LineReader reader({folder / "x"});
      LineBlock block;
      while (reader.next(block)) RC_ASSERT(block.size() > 0);
    } catch (const Error& e) {
      RC_ASSERT(e.kind() == Kind::data);
    }
  }));
}

TEST(InputFiles, are_found_by_pattern_in_order) {
  const TestFolder folder;
  for (const char* name : {"b.jsonl", "a.jsonl", "c.txt"}) write_text(folder / name, "");
  EXPECT_EQ(files_of({folder / "*.jsonl", folder / "c.txt"}),
            (std::vector<std::filesystem::path>{folder / "a.jsonl", folder / "b.jsonl", folder / "c.txt"}));
  EXPECT_EQ(refusal([&] { files_of({folder / "*.csv"}); }, Kind::usage),
            "{input} " + (folder / "*.csv") + ": no such file");
}

TEST(JsonTexts, are_a_text_or_a_list_for_each_key) {
  JsonTexts reader({"text", "title"});
  const auto& texts = reader.read(R"({"title": "\u00e9", "x": [1, {}], "text": ["a", "b"]})");
  EXPECT_EQ(texts[0], (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(texts[1], (std::vector<std::string_view>{"\u00e9"}));
}

TEST(JsonTexts, say_what_is_wrong_with_a_line) {
  EXPECT_EQ(said_of_json(R"({"tex": "a"})"), "no key \"text\"");
  EXPECT_EQ(said_of_json(R"({"text": 5})"), "key \"text\" is neither a text nor a list of texts");
  EXPECT_EQ(said_of_json(R"({"text": ["a", 5]})"), "key \"text\" is a list with something else than texts");
  EXPECT_EQ(said_of_json("[1]"), "not a JSON object");
  for (const std::string_view line :
       {"", "{\"text\": \"a", "{\"text\": \"\xff\"}", "{\"text\": \"a\"} x", "{\"text\": \"a\x01\"}"})
    EXPECT_EQ(said_of_json(line).substr(0, 10), "not JSON: ") << line;
}

TEST(Sentences, end_at_marks_before_a_beginning) {
  using List = std::vector<std::string_view>;
  EXPECT_EQ(sentences_of("Dr. Smith went home. He slept!  \"Why?\" she asked. 3.5 is a number."),
            (List{"Dr. Smith went home.", "He slept!", "\"Why?\" she asked.", "3.5 is a number."}));
  EXPECT_EQ(sentences_of("J. R. Smith, e.g. here, etc. and so on... but no end"),
            (List{"J. R. Smith, e.g. here, etc. and so on... but no end"}));
  EXPECT_EQ(sentences_of("A title\n\nA text.\nMore of it"), (List{"A title", "A text.", "More of it"}));
  EXPECT_EQ(sentences_of(" One. Two.\n", Newlines::kept), (List{" One. ", "Two.\n"}));
  EXPECT_TRUE(sentences_of(" \n ").empty());
}

TEST(Sentences, with_their_newlines_are_the_whole_text) {
  EXPECT_TRUE(rc::check([] {
    const auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'B', '.', '!', ' ', '\n', '"'));
    std::string joined;
    for (const std::string_view sentence : sentences_of(text, Newlines::kept)) joined += sentence;
    RC_ASSERT(joined == text || joined.empty());
    std::string squeezed, words;
    for (const std::string_view sentence : sentences_of(text)) squeezed += sentence;
    for (const char c : text)
      if (c != ' ' && c != '\n') words += c;
    std::erase_if(squeezed, [](char c) { return c == ' ' || c == '\n'; });
    RC_ASSERT(squeezed == words);
  }));
}
