// Conversations put together until they fill a sample.
#include "weft/data/pack_conversations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/refusal.h"
#include "tests/support/chat_tokenizer.h"
#include "weft/base/file.h"

using namespace weft;
using namespace weft::data;
using support::line_of_messages;

namespace {

// As many tokens as letters.
ConversationRules counting(std::int64_t length) {
  return {.sequence_length = length, .transcribe = [](const Conversation& conversation) {
            Transcript out;
            for (const Message& message : conversation.messages)
              out.tokens.resize(out.tokens.size() + message.content.size());
            return out;
          }};
}

std::vector<std::size_t> conversations_by_line(const std::filesystem::path& path) {
  std::vector<std::size_t> out;
  const LineFile file(path);
  for (std::int64_t i = 0; i < file.size(); ++i) out.push_back(conversations_of(file.line(i)).size());
  return out;
}

}  // namespace

TEST(PackConversations, fills_lines_in_order_as_far_as_a_sample_goes) {
  const support::TemporaryDirectory folder;
  const auto in = folder / "in", other = folder / "other", to = folder / "to";
  std::ofstream(in) << line_of_messages({"user", "abc"}) << line_of_messages({"user", "de"})
                    << line_of_messages({"user", "f", "system", "gh"});
  std::ofstream(other) << line_of_messages({"user", "0123456789"}) << line_of_messages({"user", "i"});
  Workers workers(1);
  const PackedConversations told = pack_conversations({in, other}, counting(5), workers, to);
  EXPECT_THAT(conversations_by_line(to), ::testing::ElementsAre(2, 2, 1, 1));
  EXPECT_EQ(told.conversations, 6);
  EXPECT_EQ(told.lines, 4);
  EXPECT_EQ(told.tokens, 3 + 2 + 1 + 2 + 5 + 1);
  EXPECT_EQ(told.too_long, 1);
  Workers alone(0);
  (void)pack_conversations({in, other}, counting(5), alone, folder / "again");
  EXPECT_EQ(read_file(to), read_file(folder / "again"));
}

TEST(PackConversations, leaves_each_its_own_tools) {
  const support::TemporaryDirectory folder;
  const auto in = folder / "in", to = folder / "to";
  std::ofstream(in) << R"({"messages": [{"role": "user", "content": "ab"}], "tools": [{"name": "t"}]})"
                    << "\n"
                    << line_of_messages({"user", "c"});
  Workers workers(0);
  EXPECT_EQ(pack_conversations({in}, counting(5), workers, to).lines, 1);
  const auto packed = conversations_of(LineFile(to).line(0));
  ASSERT_EQ(packed.size(), 2U);
  EXPECT_EQ(packed[0].beside, R"({"tools":[{"name":"t"}]})");
  EXPECT_EQ(packed[1].beside, "");
}

TEST(PackConversations, says_which_line_it_cannot_read_and_leaves_no_file) {
  const support::TemporaryDirectory folder;
  const auto in = folder / "in", to = folder / "to";
  Workers workers(0);
  std::ofstream(in) << line_of_messages({"user", "abc"}) << "[]\n";
  EXPECT_EQ(refusal([&] { (void)pack_conversations({in}, counting(5), workers, to); }),
            in.string() + ":2: has no list of messages, expected {\"messages\": [...]}");
  std::ofstream(in) << "\n";
  EXPECT_EQ(refusal([&] { (void)pack_conversations({in}, counting(5), workers, to); }),
            in.string() + ": hold no conversation");
  EXPECT_FALSE(std::filesystem::exists(to));
}
