#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/told.h"
#include "weft/cli/verb.h"
#include "weft/data/token_file.h"

using namespace weft::cli;
using testing::HasSubstr;
using Json = nlohmann::json;

namespace {

// A folder of its own, and weft called with words that may name files in it.
class PreprocessVerb : public testing::Test {
 protected:
  PreprocessVerb() {
    folder_ = testing::TempDir() + "weft_preprocess_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    std::ofstream(at("a.txt")) << "one\ntwo words\n";
  }
  ~PreprocessVerb() override { std::filesystem::remove_all(folder_); }

  std::string at(const char* name) const { return folder_ + "/" + name; }
  static Told told(const std::vector<std::string>& words) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    return run_and_hear(views);
  }
  Told encoded(const char* prefix) const {
    return told({"preprocess", "--input", at("a.txt"), "--output-prefix", at(prefix), "--tokenizer", "byte",
                 "--append-eod"});
  }
  void refuses(const std::vector<std::string>& words, const std::string& sentence) const {
    const Told t = told(words);
    EXPECT_EQ(t.status, 2);
    EXPECT_THAT(t.err, HasSubstr(sentence));
  }

  std::string folder_;
};

}  // namespace

TEST_F(PreprocessVerb, writes_a_data_set_and_says_where) {
  const Told t = encoded("out");
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_EQ(t.out, at("out_text_document") + "\n");
  EXPECT_THAT(t.err, HasSubstr("2 documents, 2 sequences, 14 tokens"));
  EXPECT_EQ(weft::data::TokenFile(at("out_text_document")).num_documents(), 2);
}

TEST_F(PreprocessVerb, reports_to_programs) {
  const Told t = told(
      {"preprocess", "--input", at("a.txt"), "--output-prefix", at("out"), "--tokenizer", "byte", "--json"});
  EXPECT_EQ(Json::parse(t.out)["tokens"], 12);
}

TEST_F(PreprocessVerb, warns_of_an_input_that_holds_nothing) {
  std::ofstream(at("empty.jsonl")).flush();
  const Told t =
      told({"preprocess", "--input", at("empty.jsonl"), "--output-prefix", at("out"), "--tokenizer", "byte"});
  EXPECT_EQ(t.status, 0);
  EXPECT_THAT(t.err, HasSubstr("warning: " + at("empty.jsonl") + " holds no line\n"));
  EXPECT_THAT(t.err, HasSubstr("warning: the input holds no token, so nothing can be trained on " +
                               at("out_text_document\n")));
  EXPECT_THAT(encoded("some").err, testing::Not(HasSubstr("warning: ")));
}

TEST_F(PreprocessVerb, shows_a_data_set_with_its_text) {
  encoded("out");
  const Told t = told({"preprocess", "--inspect", at("out_text_document"), "--tokenizer", "byte"});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.out, HasSubstr("documents  2"));
  EXPECT_THAT(t.out, HasSubstr("8 to 15"));
  EXPECT_THAT(t.out, HasSubstr("two words"));
  const Json object = Json::parse(told({"preprocess", "--inspect", at("out_text_document"), "--json"}).out);
  EXPECT_EQ(object["tokens"], 14);
  EXPECT_EQ(object["lengths_up_to"]["7"], 1);
  EXPECT_EQ(object["first"].size(), 2U);
}

TEST_F(PreprocessVerb, joins_and_cuts) {
  std::filesystem::create_directories(at("parts"));
  encoded("parts/a");
  encoded("parts/b");
  EXPECT_EQ(told({"preprocess", "--merge", "--input", at("parts"), "--output-prefix", at("all")}).status, 0);
  EXPECT_EQ(weft::data::TokenFile(at("all")).num_documents(), 4);
  EXPECT_EQ(told({"preprocess", "--cut", "2", "--input", at("all"), "--output-prefix", at("half")}).out,
            at("half_0") + "\n" + at("half_1") + "\n");
  EXPECT_EQ(weft::data::TokenFile(at("half_1")).num_documents(), 2);
}

TEST_F(PreprocessVerb, tries_numbers_of_workers) {
  const Told t = told({"preprocess", "--input", at("a.txt"), "--tokenizer", "byte",
                       "--find-optimal-num-workers", "--workers-to-check", "1", "2"});
  EXPECT_THAT(t.out, HasSubstr("best: --workers "));
  EXPECT_THAT(t.err, HasSubstr("2 workers: "));
}

TEST_F(PreprocessVerb, says_what_is_missing_or_wrong) {
  refuses({"preprocess", "--input", at("a.txt"), "--output-prefix", "x"},
          "preprocess: no tokenizer; give --tokenizer-type with its files, or --tokenizer");
  refuses({"preprocess", "--output-prefix", "x", "--tokenizer", "byte"},
          "preprocess: --input: expected files to read");
  refuses({"preprocess", "x"}, "preprocess: takes no 'x'; files are given with --input");
  refuses({"preprocess", "--merge", "--cut", "2"},
          "preprocess: --merge, --cut, --inspect and --find-optimal-num-workers are tasks of their own; give "
          "one");
  refuses({"preprocess", "--merge", "--input", "a", "b"},
          "preprocess: --merge takes one folder as --input, got 2");
  refuses({"preprocess", "--cut", "2"}, "preprocess: --cut takes one prefix as --input, got 0");
  refuses({"preprocess", "--merge", "--input", "a"}, "preprocess: --output-prefix: expected where to write");
  const std::vector<std::string> start = {"preprocess", "--input",     at("a.txt"), "--output-prefix",
                                          at("x"),      "--tokenizer", "byte"};
  const auto with = [&](std::initializer_list<const char*> more) {
    std::vector<std::string> words = start;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  refuses(with({"--broken-lines", "mend"}), "preprocess: --broken-lines mend: expected stop, skip");
  refuses(with({"--input-format", "xml"}), "preprocess: --input-format xml: expected auto, json, text");
  refuses(with({"--log-interval", "0"}), "--log-interval: '0' is not a whole number from 1 to 2147483647");
  refuses(with({"--split-sentences", "--lang", "german"}),
          "preprocess: --lang german: weft knows sentences of english only; give lists of sentences in the "
          "input");
}
