#include "weft/data/conversation_format.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "weft/base/error.h"
#include "weft/data/answer_tokens.h"

namespace weft::data {
namespace {

using Json = nlohmann::ordered_json;
using Messages = std::span<const Message>;

bool is_answer(const Message& message) { return message.role == "assistant"; }

// The token, or what stands for one that a vocabulary has not, as transformers give it.
std::int32_t pad_named(const std::string& token, const std::string& format, const Tokenizer& tokenizer) {
  const auto id = tokenizer.special(token);
  const auto found = id ? id : tokenizer.special("unk");
  if (!found)
    fail(Kind::usage, "{data.chat.format=", format, "} pads with ", token,
         ", which the vocabulary has not, nor an unknown token: take {data.chat.format=default}, or add it "
         "by {data.tokenizer.special}");
  return *found;
}

ConversationFormat usual_format(const std::filesystem::path& files, const Tokenizer& tokenizer) {
  auto chat = chat_template_of(files);
  if (!chat)
    fail(Kind::usage, "{data.chat.format=default}: no chat template lies beside ", files.string(),
         ", neither chat_template.jinja nor one in tokenizer_config.json");
  const auto pad = tokenizer.special("pad"), end = tokenizer.special("eos");
  if (!pad && !end)
    fail(Kind::usage, "{data.chat.format=default}: the vocabulary has neither a padding nor an end token");
  return {.chat = std::move(*chat), .pad = pad ? *pad : *end, .by_turns = false};
}

class Transcriber {
 public:
  Transcriber(std::shared_ptr<const Tokenizer> tokenizer, ConversationFormat format, Learning what)
      : tokenizer_(std::move(tokenizer)), format_(std::move(format)), what_(what) {}

  Transcript operator()(const Conversation& conversation) const {
    const bool by_turns = format_.by_turns && what_ != Learning::everything;
    const Messages all = conversation.messages;
    if (format_.by_turns) check_roles(all);
    if (by_turns) check_answers(all);
    const bool reads_more = !format_.by_turns && !conversation.beside.empty();
    const Json beside = reads_more ? beside_messages_of(Json::parse(conversation.beside)) : Json();
    const ChatText whole = written({all, beside}, Next::nothing);
    Transcript out{.tokens = tokenizer_->encode(whole.text), .learned = {}};
    if (what_ == Learning::everything) {
      out.learned.assign(out.tokens.size(), 1);
    } else if (by_turns) {
      learn_turns(all, out);
    } else {
      out.learned = tokens_within(*tokenizer_, whole.text, out.tokens, answers_in({all, beside}, whole));
    }
    return out;
  }

 private:
  enum class Next { nothing, answer };
  /// What a template reads: Megatron's messages alone.
  struct Told {
    Messages messages;
    const Json& beside;
  };

  ChatText written(const Told& told, Next next) const {
    Json list = Json::array();
    for (const Message& message : told.messages) list.push_back(Json::parse(message.json));
    return format_.chat.write(
        list, {.answer_next = next == Next::answer, .variables = &told.beside, .now = day_of_conversations});
  }

  // What a template writes of these is a text each; of other roles it would write nothing.
  static void check_roles(Messages conversation) {
    constexpr std::array<std::string_view, 4> roles = {"system", "user", "assistant", "tool"};
    for (std::size_t i = 0; i < conversation.size(); ++i) {
      const Message& message = conversation[i];
      if (std::ranges::find(roles, message.role) == roles.end())
        fail(Kind::data, "message ", i + 1, " is of '", message.role,
             "', expected system, user, assistant or tool");
      if (!message.is_text) fail(Kind::data, "message ", i + 1, " has no text as its content");
    }
  }

  static void check_answers(Messages conversation) {
    for (std::size_t i = 0; i < conversation.size(); ++i) {
      if (!is_answer(conversation[i])) continue;
      if (conversation[i].content.empty()) fail(Kind::data, "message ", i + 1, " is an empty answer");
      const std::string before = i == 0 ? "nothing" : conversation[i - 1].role;
      if (before != "user" && before != "tool")
        fail(Kind::data, "message ", i + 1, " answers ", before,
             ", expected a message of user or tool before it");
    }
  }

  /// The message from which on answers are learned.
  std::size_t first_learned(Messages conversation) const {
    if (what_ == Learning::answers) return 0;
    const auto last = std::find_if(conversation.rbegin(), conversation.rend(), is_answer);
    return last == conversation.rend() ? conversation.size()
                                       : static_cast<std::size_t>(conversation.rend() - last) - 1;
  }

  std::vector<ByteRange> answers_in(const Told& told, const ChatText& whole) const {
    if (whole.answers.empty()) return answers_by_prefix(told, whole.text);
    if (what_ == Learning::answers) return whole.answers;
    return {whole.answers.back()};
  }

  void learn_turns(Messages conversation, Transcript& out) const {
    const Json nothing;
    const std::size_t first = first_learned(conversation);
    out.learned.assign(out.tokens.size(), 0);
    std::size_t at = 0;
    for (std::size_t i = 0; i < conversation.size(); ++i) {
      const auto turn =
          tokenizer_->encode(written({conversation.subspan(i, 1), nothing}, Next::nothing).text);
      const std::size_t left = out.tokens.size() - at;
      if (turn.size() > left ||
          !std::equal(turn.begin(), turn.end(), out.tokens.begin() + std::ptrdiff_t(at)))
        fail(Kind::data, "message ", i + 1,
             " alone has other tokens than within the conversation, so which are the answer's is not known: "
             "the vocabulary does not go with {data.chat.format}");
      const std::size_t skipped = std::min(turn.size(), static_cast<std::size_t>(format_.unlearned_prefix));
      if (is_answer(conversation[i]) && i >= first)
        std::fill_n(out.learned.begin() + std::ptrdiff_t(at + skipped), turn.size() - skipped, 1);
      at += turn.size();
    }
    if (at != out.tokens.size())
      fail(Kind::data, "the conversation has ", out.tokens.size(), " tokens, its messages one by one ", at,
           ": the vocabulary does not go with {data.chat.format}");
  }

  // What an answer adds to the text of all before it, the words that ask for it included.
  std::vector<ByteRange> answers_by_prefix(const Told& told, std::string_view whole) const {
    std::vector<ByteRange> out;
    const Messages all = told.messages;
    for (std::size_t i = first_learned(all); i < all.size(); ++i) {
      if (!is_answer(all[i])) continue;
      if (i == 0) fail(Kind::data, "message 1 answers nothing, expected another message before it");
      const std::string asked = written({all.first(i), told.beside}, Next::answer).text;
      const std::string answered = written({all.first(i + 1), told.beside}, Next::nothing).text;
      if (!answered.starts_with(asked) || !whole.starts_with(answered))
        fail(Kind::data, "message ", i + 1, ": ", format_.chat.source().name,
             " writes the conversation up to this answer in another way than within the whole, and marks no "
             "answers with {% generation %}, so where it lies is not known: mark answers in the template, or "
             "take {data.chat.learned=last}");
      out.push_back({asked.size(), answered.size()});
    }
    return out;
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  ConversationFormat format_;
  Learning what_;
};

}  // namespace

ConversationFormat conversation_format(const std::string& name, const std::filesystem::path& tokenizer_files,
                                       const Tokenizer& tokenizer) {
  if (name == "default") return usual_format(tokenizer_files, tokenizer);
  ConversationFormat format{.chat = megatron_chat_template(name)};
  format.pad = pad_named(name == "nemotron-h-aligned" ? "<SPECIAL_233>" : "<unk>", name, tokenizer);
  if (name == "nemotron-nano-v2") format.unlearned_prefix = 3;  // of the marker, the role and the line's end
  return format;
}

Transcribe transcriber(std::shared_ptr<const Tokenizer> tokenizer, ConversationFormat format, Learning what) {
  return Transcriber(std::move(tokenizer), std::move(format), what);
}

}  // namespace weft::data
