#include "weft/data/preprocess.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/data/golden.h"
#include "tests/data/pack.h"
#include "tests/data/refusal.h"

using namespace weft;
using namespace weft::data;

namespace {

// A token for each byte; 256 ends a document.
class Bytes : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) text += static_cast<char>(id);
    return text;
  }
  std::int32_t size() const override { return 257; }
  std::optional<std::int32_t> special(std::string_view name) const override {
    return name == "eod" ? std::optional<std::int32_t>(256) : std::nullopt;
  }
  std::string token(std::int32_t id) const override { return std::to_string(id); }
};

std::string document(const TokenFile& file, std::int64_t d) {
  std::string text;
  const auto [begin, end] = file.document(d);
  for (std::int64_t s = begin; s < end; ++s) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(file.length(s)));
    file.read(s, 0, ids);
    for (const std::int32_t id : ids) text += id == 256 ? "$" : std::string(1, static_cast<char>(id));
    text += '|';
  }
  return text;
}

std::vector<std::string> documents(const std::string& prefix) {
  const TokenFile file(prefix);
  std::vector<std::string> all;
  for (std::int64_t d = 0; d < file.num_documents(); ++d) all.push_back(document(file, d));
  return all;
}

PreprocessOptions options_for(const TestFolder& folder, std::vector<std::string> input) {
  PreprocessOptions options;
  for (std::string& name : input) options.input.push_back(folder / name);
  options.output_prefix = folder / "out";
  return options;
}

std::string json_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text +=
        R"({"text": ")" + std::string(static_cast<std::size_t>(i % 90), 'a') + std::to_string(i) + "\"}\n";
  return text;
}

}  // namespace

TEST(Preprocess, leaves_out_the_mark_before_a_plain_text) {
  const TestFolder folder;
  write_text(folder / "a.txt", "\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n");
  (void)preprocess(options_for(folder, {"a.txt"}), Bytes());
  EXPECT_EQ(documents(folder / "out_text_document"), (std::vector<std::string>{"one|", "\xEF\xBB\xBFtwo|"}));
}

TEST(Preprocess, makes_a_document_of_every_line) {
  const TestFolder folder;
  write_text(folder / "a.jsonl",
             "{\"text\": \"one\"}\n{\"text\": \"\"}\n{\"text\": [\"x\", \"\", \"yz\"]}\n");
  PreprocessOptions options = options_for(folder, {"a.jsonl"});
  options.append_eod = true;
  const PreprocessReport report = preprocess(options, Bytes());
  EXPECT_EQ(documents(folder / "out_text_document"), (std::vector<std::string>{"one$|", "", "x|yz$|"}));
  EXPECT_EQ(report.documents, 3);
  EXPECT_EQ(report.sentences, 3);
  EXPECT_EQ(report.tokens, 8);
  EXPECT_EQ(TokenFile(report.prefixes.at(0)).type(), TokenType::u16);
}

TEST(Preprocess, writes_a_data_set_for_every_key) {
  const TestFolder folder;
  write_text(folder / "a", R"({"q": "Why?", "a": "So. Or so."})");
  PreprocessOptions options = options_for(folder, {"a"});
  options.json_keys = {"q", "a"};
  options.split_sentences = true;
  preprocess(options, Bytes());
  EXPECT_EQ(documents(folder / "out_q_sentence"), (std::vector<std::string>{"Why?|"}));
  EXPECT_EQ(documents(folder / "out_a_sentence"), (std::vector<std::string>{"So.|Or so.|"}));
}

TEST(Preprocess, gives_the_same_bytes_whatever_the_number_of_workers_and_the_packing) {
  const TestFolder folder;
  const std::string text = json_lines(20000);
  write_text(folder / "a.jsonl", text);
  write_text(folder / "a.jsonl.gz", gzipped(text));
  preprocess(options_for(folder, {"a.jsonl"}), Bytes());
  const std::string bin = read_text(folder / "out_text_document.bin"),
                    idx = read_text(folder / "out_text_document.idx");
  for (const char* input : {"a.jsonl", "a.jsonl.gz"}) {
    for (const int workers : {2, 5}) {
      PreprocessOptions options = options_for(folder, {input});
      options.workers = workers;
      preprocess(options, Bytes());
      EXPECT_EQ(read_text(folder / "out_text_document.bin"), bin);
      EXPECT_EQ(read_text(folder / "out_text_document.idx"), idx);
    }
  }
}

TEST(Preprocess, deals_lines_out_to_partitions_as_megatron_does) {
  const TestFolder folder;
  write_text(folder / "a.txt", "0\n1\n2\n");
  write_text(folder / "b.txt", "3\n4\n");
  PreprocessOptions options = options_for(folder, {"a.txt", "b.txt"});
  options.workers = options.partitions = 2;
  preprocess(options, Bytes());
  EXPECT_EQ(documents(folder / "out_text_document"),
            (std::vector<std::string>{"0|", "2|", "4|", "1|", "3|"}));
  options.keep_sequential_samples = true;
  preprocess(options, Bytes());
  EXPECT_EQ(documents(folder / "out_text_document"),
            (std::vector<std::string>{"0|", "1|", "2|", "3|", "4|"}));
}

TEST(Preprocess, reads_its_input_once_for_all_partitions_and_leaves_no_parts) {
  const TestFolder folder;
  std::string lines;
  for (int i = 0; i < 7; ++i) {
    const std::string n = std::to_string(i);
    lines += R"({"q": "q)" + n + R"(", "a": ["a)" + n + R"(", "b"]})" + "\n";
  }
  write_text(folder / "a.jsonl.gz", gzipped(lines));
  PreprocessOptions options = options_for(folder, {"a.jsonl.gz"});
  options.json_keys = {"q", "a"};
  options.workers = options.partitions = 3;
  const PreprocessReport report = preprocess(options, Bytes());
  EXPECT_EQ(report.bytes, static_cast<std::int64_t>(gzipped(lines).size()));
  EXPECT_EQ(report.documents, 7);
  EXPECT_EQ(documents(folder / "out_q_document"),
            (std::vector<std::string>{"q0|", "q3|", "q6|", "q1|", "q4|", "q2|", "q5|"}));
  EXPECT_EQ(documents(folder / "out_a_document")[3], "a1|b|");
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder / ""))
    left.insert(entry.path().filename().string());
  EXPECT_EQ(left, (std::set<std::string>{"a.jsonl.gz", "out_a_document.bin", "out_a_document.idx",
                                         "out_q_document.bin", "out_q_document.idx"}));
}

TEST(Preprocess, stops_at_a_broken_line_and_names_it) {
  const TestFolder folder;
  write_text(folder / "a", "{\"text\": \"one\"}\nhello\n");
  EXPECT_EQ(
      refusal([&] { preprocess(options_for(folder, {"a"}), Bytes()); }).substr((folder / "a").size(), 13),
      ":2: not JSON:");
  EXPECT_FALSE(std::filesystem::exists(folder / "out_text_document.bin"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out_text_document.bin.partial"));
}

TEST(Preprocess, skips_and_counts_broken_lines_when_told_to) {
  const TestFolder folder;
  write_text(folder / "a", "{\"text\": \"one\"}\nhello\n\n{\"text\": \"two\"}\n");
  PreprocessOptions options = options_for(folder, {"a"});
  options.broken = BrokenLines::skip;
  const PreprocessReport report = preprocess(options, Bytes());
  EXPECT_EQ(report.broken, 2);
  EXPECT_EQ(report.first_broken.substr(0, (folder / "a").size() + 13), (folder / "a") + ":2: not JSON:");
  EXPECT_EQ(documents(folder / "out_text_document"), (std::vector<std::string>{"one|", "two|"}));
}

TEST(Preprocess, tells_how_far_it_is) {
  const TestFolder folder;
  write_text(folder / "a", json_lines(20000));
  std::vector<double> shares;
  preprocess(options_for(folder, {"a"}), Bytes(),
             [&](const PreprocessReport&, double share) { shares.push_back(share); });
  EXPECT_GT(shares.size(), 2U);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1.0);
}

TEST(Preprocess, refuses_options_that_do_not_fit_together) {
  const TestFolder folder;
  write_text(folder / "a.txt", "x");
  const auto said = [&](auto change) {
    PreprocessOptions options = options_for(folder, {"a.txt"});
    change(options);
    return refusal([&] { preprocess(options, Bytes()); }, Kind::usage);
  };
  EXPECT_EQ(said([](auto& o) { o.workers = 0; }), "{workers} 0: expected at least 1");
  EXPECT_EQ(said([](auto& o) { o.partitions = 0; }), "{partitions} 0: expected at least 1");
  EXPECT_EQ(said([](auto& o) { o.partitions = 2; }), "{workers} 1 is not a multiple of {partitions} 2");
  EXPECT_EQ(said([](auto& o) { o.json_keys = {}; }), "{json_keys}: no keys");
  EXPECT_EQ(said([](auto& o) {
              o.json_keys = {"a", "b"};
            }),
            "{json_keys}: 2 keys, but lines of plain text have only one");
  EXPECT_EQ(said([](auto& o) { o.output_prefix = ""; }), "{output_prefix}: expected where to write");
}
