// Lines of conversations, and the samples that are made of them.
#include "weft/data/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/data/pack.h"
#include "tests/data/refusal.h"
#include "tests/support/temporary.h"
#include "weft/data/conversation_dataset.h"
#include "weft/data/open.h"

using namespace weft;
using namespace weft::data;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

constexpr std::int32_t filling = 99;

// A letter is a token; those of answers are learned.
Transcript spelled(const Conversation& conversation) {
  Transcript out;
  for (const Message& message : conversation.messages)
    for (const char letter : message.content) {
      out.tokens.push_back(letter - 'a');
      out.learned.push_back(message.role == "assistant" ? 1 : 0);
    }
  return out;
}

ConversationRules spelling(std::int64_t length) {
  return {.sequence_length = length, .pad = filling, .transcribe = spelled};
}

std::string said(const std::string& role, const std::string& content) {
  return R"({"role": ")" + role + R"(", "content": ")" + content + R"("})";
}

std::string line_with(const std::string& question, const std::string& answer) {
  return R"({"messages": [)" + said("user", question) + ", " + said("assistant", answer) + "]}\n";
}

const std::string two_in_a_line = R"({"messages": [)" + said("system", "a") + "," + said("user", "bc") + "," +
                                  said("assistant", "de") + "," + said("system", "f") + "," +
                                  said("user", "g") + "," + said("assistant", "hij") + "]}\n";

class Lines {
 public:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

 private:
  support::TemporaryDirectory folder_;
};

std::shared_ptr<const LineFile> opened(const std::string& path) {
  return std::make_shared<const LineFile>(path);
}

Sample sample_of(const std::string& text, const ConversationRules& rules) {
  const Lines lines;
  return ConversationDataset(opened(lines.file("a", text)), {.lines = {0, 1}, .samples = 1}, rules).get(0);
}

std::string refused_line(const std::string& text) {
  const Lines lines;
  const std::string path = lines.file("a", text);
  const std::string all = refusal([&] {
    const auto file = opened(path);
    (void)ConversationDataset(file, {.lines = {0, file->size()}, .samples = file->size()}, spelling(4))
        .get(file->size() - 1);
  });
  EXPECT_TRUE(all.starts_with(path + ":"));
  return all.substr(path.size());
}

}  // namespace

TEST(LineFile, finds_lines_in_any_order_and_counts_as_an_editor_does) {
  const Lines lines;
  const LineFile file(lines.file("a", "one\n\n  \ntwo\r\nthree"));
  ASSERT_EQ(file.size(), 3);
  EXPECT_EQ(file.line(2), "three");
  EXPECT_EQ(file.line(0), "one");
  EXPECT_EQ(file.line(1), "two");
  EXPECT_EQ(file.number(0), 1);
  EXPECT_EQ(file.number(1), 4);
  EXPECT_EQ(LineFile(lines.file("b", "")).size(), 0);
}

TEST(LineFile, refuses_what_is_packed) {
  const Lines lines;
  for (const std::string& packed : {gzipped("{}\n"), zstandard("{}\n")}) {
    const std::string path = lines.file("a", packed);
    EXPECT_EQ(refusal([&] { (void)LineFile(path); }),
              path + ": is packed, and its lines are read in any order: unpack it first");
  }
}

TEST(Conversations, part_where_the_system_speaks) {
  const auto parts = conversations_of(two_in_a_line);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].messages.size(), 3u);
  EXPECT_EQ(parts[1].messages[2].content, "hij");
  EXPECT_EQ(conversations_of(line_with("a", "b")).size(), 1u);
}

TEST(Conversations, may_be_lists_of_their_own) {
  const auto parts = conversations_of(R"({"messages": [[{"role": "user", "content": "a"}], [],
                                          [{"role": "user", "content": "b", "name": "c"}]]})");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].messages[0].content, "b");
  EXPECT_EQ(json_of(parts[1].messages), R"([{"role":"user","content":"b","name":"c"}])");
}

TEST(Conversations, are_written_so_that_they_are_read_again) {
  const auto packed = conversations_of(two_in_a_line);
  EXPECT_THAT(line_of(packed), ::testing::StartsWith(R"({"messages": [{"role":)"));
  EXPECT_EQ(conversations_of(line_of(packed)).size(), 2u);
  const auto plain = conversations_of(line_with("a", "b"));
  const std::string both = line_of({plain[0], plain[0]});
  EXPECT_THAT(both, ::testing::StartsWith(R"({"messages": [[)"));
  EXPECT_EQ(conversations_of(both).size(), 2u);
}

TEST(Conversations, of_a_packed_line_are_lines_of_their_own) {
  const std::string one = R"({"messages": [{"role": "user", "content": "a"}], "tools": [1]})";
  const auto found = conversations_of(R"({"packed": [)" + one + ", " + two_in_a_line + "]}");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].beside, R"({"tools":[1]})");
  EXPECT_EQ(found[2].messages[2].content, "hij");
  const auto again = conversations_of(line_of(found));
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again[0].beside, found[0].beside);
  EXPECT_EQ(json_of(again[2].messages), json_of(found[2].messages));
}

TEST(ConversationDataset, learns_answers_alone_and_begins_anew_with_each_conversation) {
  const Sample sample = sample_of(two_in_a_line, spelling(12));
  EXPECT_THAT(sample[Field::tokens], ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, filling, filling));
  EXPECT_THAT(sample[Field::labels], ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, filling, filling, filling));
  EXPECT_THAT(sample[Field::loss_mask], ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0));
  EXPECT_THAT(sample[Field::positions], ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(sample[Field::documents], ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1));
}

TEST(ConversationDataset, cuts_what_is_too_long_and_learns_nothing_behind_it) {
  const Sample sample = sample_of(two_in_a_line, spelling(4));
  EXPECT_THAT(sample[Field::tokens], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(sample[Field::labels], ElementsAre(1, 2, 3, filling));
  EXPECT_THAT(sample[Field::loss_mask], ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(sample[Field::documents], ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(sample_of(two_in_a_line, spelling(8))[Field::positions], ElementsAre(0, 1, 2, 3, 4, 0, 1, 2));
  // As many tokens as the sequence has: the last one is a label, and padding follows it.
  EXPECT_THAT(sample_of(line_with("a", "bcd"), spelling(4))[Field::loss_mask], ElementsAre(1, 1, 1, 0));
}

TEST(ConversationDataset, counts_no_label_that_is_padding_unless_told_so) {
  ConversationRules rules = spelling(5);
  rules.pad = 3;
  EXPECT_THAT(sample_of(line_with("a", "bdc"), rules)[Field::loss_mask], ElementsAre(1, 0, 1, 0, 0));
  rules.pad_is_learned = true;
  EXPECT_THAT(sample_of(line_with("a", "bdc"), rules)[Field::loss_mask], ElementsAre(1, 1, 1, 0, 0));
}

TEST(ConversationDataset, has_one_conversation_a_sample_where_layers_cannot_part_them) {
  ConversationRules rules = spelling(4);
  rules.apart = false;
  const Sample sample = sample_of(line_with("ab", "c"), rules);
  EXPECT_FALSE(sample.has(Field::documents));
  EXPECT_THAT(sample[Field::positions], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(
      refusal([&] { (void)sample_of(two_in_a_line, rules); }),
      ::testing::EndsWith(":1: holds 2 conversations, and layers that remember go from one to the next: "
                          "give each a line of its own"));
}

TEST(ConversationDataset, says_which_line_it_cannot_read) {
  EXPECT_EQ(refused_line(line_with("a", "b") + "\n{\"messages\": [\n"),
            ":3: is no JSON (at byte 15), expected {\"messages\": [...]}");
  EXPECT_EQ(refused_line("[]"), ":1: has no list of messages, expected {\"messages\": [...]}");
  EXPECT_EQ(refused_line("{\"messages\": \"a\"}"),
            ":1: has no list of messages, expected {\"messages\": [...]}");
  EXPECT_EQ(refused_line("{\"messages\": [], \"n\": 1e999}"),
            ":1: is no JSON that can be read: a number too large");
  EXPECT_EQ(refused_line("{\"messages\": []}"), ":1: its list of messages is empty");
  EXPECT_EQ(refused_line("{\"packed\": 1}"),
            ":1: its packed is no list of lines, expected {\"packed\": [{\"messages\": [...]}, ...]}");
  EXPECT_EQ(
      refused_line("{\"messages\": [{\"content\": \"a\"}]}"),
      ":1: message 1 has no role, expected {\"role\": \"system, user, assistant or tool\", \"content\": "
      "\"...\"}");
  EXPECT_EQ(refused_line(line_with("", "")), ":1: its messages hold no word");
  EXPECT_EQ(refused_line("{\"messages\": [" + std::string(1'000'000, '[')),
            ":1: has more than 200 lists and objects within each other");
}

TEST(ConversationDataset, refuses_words_that_the_model_has_not) {
  ConversationRules rules = spelling(5);
  rules.vocabulary = 4;
  EXPECT_THAT(sample_of(line_with("a", "bd"), rules)[Field::tokens], ElementsAre(0, 1, 3, filling, filling));
  EXPECT_THAT(refusal([&] { (void)sample_of(line_with("a", "be"), rules); }),
              ::testing::EndsWith(":1: has token 4, and the model knows 4; is it the model's tokenizer?"));
}

TEST(ConversationDataset, tells_where_conversations_lie) {
  const Lines lines;
  const std::string path = lines.file("a", "\n" + two_in_a_line);
  const ConversationDataset set(opened(path), {.lines = {0, 1}, .samples = 1}, spelling(8));
  const auto origins = set.origins(0);
  ASSERT_EQ(origins.size(), 2u);
  EXPECT_EQ(origins[1].source, path);
  EXPECT_EQ(origins[1].sequence, 2);
  EXPECT_EQ(origins[1].from, 5);
  EXPECT_EQ(origins[1].count, 3);
}

namespace {

// The first letters of samples, which say which lines they are.
std::vector<std::int32_t> lines_read(const Dataset& set) {
  std::vector<std::int32_t> out;
  for (std::int64_t i = 0; i < set.size(); ++i) out.push_back(set.get(i)[Field::tokens][0]);
  return out;
}

DataRequest asks_for(const std::vector<std::string>& paths, std::int64_t samples) {
  DataRequest request;
  request.paths = data_paths({.data_path = paths});
  request.split = "80,20,0";
  request.sizes = {samples, 2, 0};
  return request;
}

}  // namespace

TEST(ConversationMembers, read_their_lines_again_and_again_and_share_them_out_by_split) {
  const Lines lines;
  const std::string path = lines.file("a", line_with("a", "x") + line_with("b", "x") + line_with("c", "x") +
                                               line_with("d", "x") + line_with("e", "x"));
  const Datasets sets = open_conversation_datasets(asks_for({path}, 6), spelling(4));
  EXPECT_THAT(lines_read(*sets[Split::train]), ElementsAre(0, 1, 2, 3, 0, 1));
  EXPECT_THAT(lines_read(*sets[Split::valid]), ElementsAre(4, 4));
  EXPECT_EQ(sets[Split::test], nullptr);
}

TEST(ConversationMembers, shuffle_every_epoch_anew_in_the_keyed_order) {
  const Lines lines;
  std::string text;
  for (char letter = 'a'; letter < 'k'; ++letter) text += line_with(std::string(1, letter), "x");
  DataRequest request = asks_for({lines.file("a", text)}, 16);
  request.order = DataOrder::keyed;
  const Datasets sets = open_conversation_datasets(request, spelling(4));
  auto read = lines_read(*sets[Split::train]);
  const std::vector first(read.begin(), read.begin() + 8), second(read.begin() + 8, read.end());
  EXPECT_NE(first, second);
  EXPECT_THAT(first, ::testing::UnorderedElementsAreArray(second));
  EXPECT_THAT(first, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(ConversationMembers, are_blended_by_weight) {
  const Lines lines;
  const std::string first = lines.file("a", line_with("a", "x")),
                    second = lines.file("b", line_with("b", "x"));
  DataRequest request = asks_for({"1", first, "3", second}, 8);
  request.split = "1,0,0";
  const Datasets sets = open_conversation_datasets(request, spelling(4));
  const auto read = lines_read(*sets[Split::train]);
  EXPECT_EQ(std::ranges::count(std::span(read).first(8), 0), 2);
}

TEST(ConversationMembers, refuse_a_file_without_a_line_and_data_that_are_made_up) {
  const Lines lines;
  const std::string path = lines.file("a", "\n\n");
  EXPECT_EQ(refusal([&] { (void)open_conversation_datasets(asks_for({path}, 1), spelling(4)); }),
            path + ": holds no conversation");
  DataRequest request = asks_for({}, 1);
  request.paths = {.shared = {}, .per_split = {}, .mock = true};
  EXPECT_EQ(refusal([&] { (void)open_conversation_datasets(request, spelling(4)); }, Kind::usage),
            "{data.mock}: no conversations are made up: give {data.paths}");
}
