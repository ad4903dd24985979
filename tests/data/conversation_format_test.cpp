// Conversations in tokens: what each format learns, and what it cannot tell.
#include "weft/data/conversation_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/refusal.h"
#include "tests/support/chat_tokenizer.h"
#include "weft/text/open.h"

using namespace weft;
using namespace weft::data;
using support::ChatTokenizer;
using support::line_of_messages;

namespace {

std::shared_ptr<const Tokenizer> opened(const ChatTokenizer& files) {
  return open_tokenizer({.tokenizer_type = "SFTTokenizer",
                         .tokenizer_model = files.folder(),
                         .tokenizer_hf_no_include_special_tokens = true});
}

struct Read {
  std::string text, learned;  // what is not learned is a dot
};

Read read_by(const ChatTokenizer& files, const std::string& format, Learning what,
             const std::vector<std::string>& messages) {
  const auto tokenizer = opened(files);
  const auto transcribe =
      transcriber(tokenizer, conversation_format(format, files.folder(), *tokenizer), what);
  const Transcript out = transcribe(conversations_of(line_of_messages(messages)).front());
  Read read{.text = tokenizer->decode(out.tokens), .learned = {}};
  for (std::size_t i = 0; i < out.tokens.size(); ++i)
    read.learned += out.learned[i] != 0 ? tokenizer->decode(std::span(out.tokens).subspan(i, 1)) : ".";
  return read;
}

std::string answers_by(const std::string& format, const std::vector<std::string>& messages) {
  return read_by(ChatTokenizer(), format, Learning::answers, messages).learned;
}

std::string dots(std::size_t count) { return std::string(count, '.'); }

std::string refused_by(const std::string& format, const std::vector<std::string>& messages) {
  return refusal([&] { (void)answers_by(format, messages); });
}

const std::vector<std::string> two_rounds = {"user", "Q", "assistant", "A", "user", "R", "assistant", "B"};
const std::vector<std::string> small_talk = {"system", "S", "user", "Q", "assistant", "A"};

}  // namespace

TEST(ConversationFormat, nemotron_h_learns_answers_and_their_line_ends) {
  const Read read = read_by(ChatTokenizer(), "nemotron-h-aligned", Learning::answers, small_talk);
  EXPECT_EQ(read.text, "<SPECIAL_10>System\nS\n<SPECIAL_11>User\nQ\n<SPECIAL_11>Assistant\nA\n");
  EXPECT_EQ(read.learned, dots(10 + 8 + 11) + "A\n");
}

TEST(ConversationFormat, nemotron_nano_learns_not_the_three_tokens_before_an_answer) {
  // A token a letter: the prefix of a real vocabulary is three tokens, here the marker and two letters.
  EXPECT_EQ(answers_by("nemotron-nano-v2", small_talk), dots(10 + 8 + 3) + "sistant\nA\n<SPECIAL_12>\n");
}

TEST(ConversationFormat, identity_writes_contents_alone) {
  EXPECT_EQ(answers_by("identity", {"user", "Q: ", "assistant", "A", "user", "R", "assistant", "B"}),
            "...A.B");
}

TEST(ConversationFormat, default_learns_everything_or_answers_with_their_ends) {
  const ChatTokenizer files;
  const Read all = read_by(files, "default", Learning::everything, small_talk);
  EXPECT_EQ(all.learned, all.text);
  EXPECT_EQ(all.text,
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n"
            "<|im_start|>assistant\nA<|im_end|>\n");
  EXPECT_EQ(answers_by("default", small_talk), dots(11 + 9 + 11) + "A<|im_end|>\n");
  EXPECT_EQ(answers_by("default", {"user", "Q", "assistant", "A", "user", "R", "assistant", "B"}),
            dots(9 + 11) + "A<|im_end|>\n" + dots(9 + 11) + "B<|im_end|>\n");
}

TEST(ConversationFormat, learns_what_a_template_marks) {
  const ChatTokenizer marked(
      "{% for m in messages %}{{ m['role'][0] + ':' }}{% if m['role'] == 'assistant' %}{% generation %}{{ "
      "m['content'] }}{% endgeneration %}!{% else %}{{ m['content'] }}{% endif %}{% endfor %}");
  EXPECT_EQ(read_by(marked, "default", Learning::answers, {"user", "Q", "assistant", "A"}).learned,
            dots(5) + "A.");
}

TEST(ConversationFormat, refuses_a_template_that_writes_an_answer_in_two_ways) {
  // As templates do that leave thoughts out of all answers but the last.
  const ChatTokenizer forgetful(
      "{% for m in messages %}{% if loop.last and m['role'] == 'assistant' %}{{ '(thought)' }}{% endif %}{{ "
      "m['content'] }}{% endfor %}");
  EXPECT_EQ(read_by(forgetful, "default", Learning::last_answer, two_rounds).learned, "...(thought)B");
  EXPECT_THAT(
      refusal([&] { (void)read_by(forgetful, "default", Learning::answers, two_rounds); }),
      ::testing::AllOf(
          ::testing::StartsWith("message 2: "),
          ::testing::EndsWith(
              " writes the conversation up to this answer in another way than within the whole, and "
              "marks no answers with {% generation %}, so where it lies is not known: mark answers in "
              "the template, or take {data.chat.learned=last}")));
}

namespace {

std::string text_of(const std::string& line, const std::string& format = "default") {
  const ChatTokenizer files(
      "{% for t in tools or [] %}{{ t.name + ';' }}{% endfor %}{% for m in messages %}{{ m['content'] }}{% "
      "endfor "
      "%}"
      "{{ mood }}");
  const auto tokenizer = opened(files);
  const auto transcribe =
      transcriber(tokenizer, conversation_format(format, files.folder(), *tokenizer), Learning::everything);
  return tokenizer->decode(transcribe(conversations_of(line).front()).tokens);
}

const std::string question = R"({"messages": [{"role": "user", "content": "Q"}])";

}  // namespace

TEST(ConversationFormat, hands_a_template_the_lines_tools) {
  EXPECT_EQ(text_of(question + R"(, "tools": [{"name": "x"}, {"name": "y"}]})"), "x;y;Q");
  EXPECT_EQ(text_of(question + R"(, "tools": "[{\"name\": \"x\"}]", "documents": null})"), "x;Q");
  EXPECT_EQ(text_of(question + R"(, "tools": "", "chat_template_kwargs": {"mood": "!"}})"), "Q!");
  EXPECT_EQ(text_of(question + R"(, "tools": 5})", "identity"), "Q");
  EXPECT_EQ(refusal([] { (void)text_of(question + R"(, "tools": {}})"); }),
            "its tools are object, expected a list");
  EXPECT_EQ(refusal([] { (void)text_of(question + R"(, "tools": "a"})"); }),
            "its tools are a text that is no JSON, expected a list");
  EXPECT_EQ(refusal([] { (void)text_of(question + R"(, "chat_template_kwargs": 1})"); }),
            "its chat_template_kwargs are number, expected an object");
}

TEST(ConversationFormat, learns_the_last_answer_alone_where_told_so) {
  const auto last_by = [](const ChatTokenizer& files, const char* format,
                          const std::vector<std::string>& messages) {
    return read_by(files, format, Learning::last_answer, messages).learned;
  };
  EXPECT_EQ(last_by(ChatTokenizer(), "identity", two_rounds), "...B");
  EXPECT_EQ(last_by(ChatTokenizer(), "default", two_rounds), dots(9 + 14 + 9 + 11) + "B<|im_end|>\n");
  EXPECT_EQ(last_by(ChatTokenizer(), "default", {"user", "Q"}), dots(9));
  EXPECT_EQ(last_by(ChatTokenizer(), "identity", {"user", "Q"}), ".");
  const ChatTokenizer marked(
      "{% for m in messages %}{% generation %}{{ m['content'] }}{% endgeneration %}{% endfor %}");
  EXPECT_EQ(last_by(marked, "default", two_rounds), "...B");
}

TEST(ConversationFormat, pads_with_its_own_token) {
  const ChatTokenizer files, endless("{{ '' }}", R"("eos_token": "<|im_end|>")");
  const auto tokenizer = opened(files), other = opened(endless);
  const auto pad = [](const ChatTokenizer& of, const Tokenizer& by, const char* format) {
    return by.token(conversation_format(format, of.folder(), by).pad);
  };
  EXPECT_EQ(pad(files, *tokenizer, "nemotron-h-aligned"), "<SPECIAL_233>");
  EXPECT_EQ(pad(files, *tokenizer, "nemotron-nano-v2"), "<unk>");
  EXPECT_EQ(pad(files, *tokenizer, "default"), "<unk>");
  EXPECT_EQ(pad(endless, *other, "default"), "<|im_end|>");
}

TEST(ConversationFormat, says_what_a_conversation_lacks) {
  EXPECT_EQ(refused_by("identity", {"user", "Q", "poet", "A"}),
            "message 2 is of 'poet', expected system, user, assistant or tool");
  EXPECT_EQ(refused_by("identity", {"user", "Q", "assistant", ""}), "message 2 is an empty answer");
  EXPECT_EQ(refused_by("identity", {"assistant", "A"}),
            "message 1 answers nothing, expected a message of user or tool before it");
  EXPECT_EQ(refused_by("identity", {"system", "S", "assistant", "A"}),
            "message 2 answers system, expected a message of user or tool before it");
  EXPECT_EQ(refused_by("default", {"assistant", "A"}),
            "message 1 answers nothing, expected another message before it");
  const ChatTokenizer files;
  const auto tokenizer = opened(files);
  const auto transcribe =
      transcriber(tokenizer, conversation_format("identity", {}, *tokenizer), Learning::answers);
  const auto untold = conversations_of(R"({"messages": [{"role": "user", "content": ["a"]}]})");
  EXPECT_EQ(refusal([&] { (void)transcribe(untold.front()); }), "message 1 has no text as its content");
}

namespace {

// A word of two letters, so that an answer's first letter may be one with what is before it.
class Pairs final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool pair = text.substr(i, 2) == "QA";
      ids.push_back(pair ? 1000 : static_cast<unsigned char>(text[i]));
      i += pair ? 1 : 0;
    }
    return ids;
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) text += id == 1000 ? "QA" : std::string(1, static_cast<char>(id));
    return lowers_ && !text.empty() ? "q" + text.substr(1) : text;
  }
  std::int32_t size() const override { return 1001; }
  std::optional<std::int32_t> special(std::string_view) const override { return 0; }
  std::string token(std::int32_t) const override { return {}; }
  bool lowers_ = false;
};

Transcript paired(bool by_turns, bool lowers) {
  const auto tokenizer = std::make_shared<Pairs>();
  tokenizer->lowers_ = lowers;
  const ChatTokenizer files("{% for message in messages %}{{ message['content'] }}{% endfor %}");
  const auto format = conversation_format(by_turns ? "identity" : "default", files.folder(), *tokenizer);
  return transcriber(tokenizer, format, Learning::answers)(
      conversations_of(line_of_messages({"user", "xQ", "assistant", "AA"})).front());
}

}  // namespace

TEST(ConversationFormat, refuses_a_turn_whose_tokens_are_others_alone) {
  EXPECT_EQ(refusal([] { (void)paired(true, false); }),
            "message 1 alone has other tokens than within the conversation, so which are the answer's is not "
            "known: the vocabulary does not go with {data.chat.format}");
}

TEST(ConversationFormat, learns_a_token_that_holds_an_answers_first_letter) {
  EXPECT_THAT(paired(false, false).learned, ::testing::ElementsAre(0, 1, 1));
  EXPECT_EQ(refusal([] { (void)paired(false, true); }),
            "which tokens are the answers' is not known: the tokenizer changes the text (its tokens read "
            "otherwise); take {data.chat.learned=all}");
}

TEST(ConversationFormat, refuses_what_it_cannot_pad_or_write) {
  const ChatTokenizer without("", R"("eos_token": "<|im_end|>")");
  const auto tokenizer = opened(without);
  EXPECT_EQ(refusal([&] { (void)conversation_format("default", without.folder(), *tokenizer); }, Kind::usage),
            "{data.chat.format=default}: no chat template lies beside " + without.folder() +
                ", neither chat_template.jinja nor one in tokenizer_config.json");
  const auto bytes = open_tokenizer({.tokenizer_type = "NullTokenizer", .vocab_size = 10});
  EXPECT_EQ(
      refusal([&] { (void)conversation_format("nemotron-h-aligned", {}, *bytes); }, Kind::usage),
      "{data.chat.format=nemotron-h-aligned} pads with <SPECIAL_233>, which the vocabulary has not, nor "
      "an unknown token: take {data.chat.format=default}, or add it by {data.tokenizer.special}");
}
