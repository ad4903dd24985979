// Chat templates: a conversation written as one text, as the Jinja template beside a tokenizer says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/split.h"

namespace weft {

namespace jinja {
struct Template;
}

/// What a template is made of.
struct ChatSource {
  std::string jinja;
  std::string with_tools = {};  // of conversations with tools, where that is another template; or empty
  std::map<std::string, std::string> tokens;  // "bos_token": "<s>" and so on, as the template asks for them
  std::string name;                           // for messages: a file, mostly
};

struct ChatOptions {
  bool answer_next = false;  // ends where an answer begins: add_generation_prompt
  // Null or an object: what else the template may ask for, such as tools, documents or enable_thinking.
  // Stands before tokens of the same name.
  const nlohmann::ordered_json* variables = nullptr;
  // Seconds since 1970 as a clock on the wall shows them, for strftime_now; unset: this machine's clock.
  std::optional<std::int64_t> now = {};
  // A template is a program from anybody, so what it may do is limited: about one for each step and each byte
  // that it makes.
  std::int64_t work = 4'000'000'000;
};

struct ChatText {
  std::string text;
  // What stands between {% generation %} and {% endgeneration %}: bytes of the text, in the order of writing.
  // Templates that have no such blocks leave this empty.
  std::vector<ByteRange> answers;
};

/// Const and safe for many threads. Writes what transformers' apply_chat_template does; what weft does not
/// know of Jinja is refused by its name and line, never passed over.
class ChatTemplate {
 public:
  /// Throws Kind::data with the template's name and line where it is none.
  explicit ChatTemplate(ChatSource source);

  /// Messages are an array of objects: {"role": …, "content": …} and whatever else the template reads
  /// (tool_calls, reasoning_content). Throws Kind::data, with the template's own words where it refuses the
  /// conversation.
  [[nodiscard]] ChatText write(const nlohmann::ordered_json& messages, const ChatOptions& options = {}) const;

  [[nodiscard]] const ChatSource& source() const { return source_; }

 private:
  ChatSource source_;
  std::shared_ptr<const jinja::Template> plain_, with_tools_;
};

/// The template beside a tokenizer, a directory or its tokenizer.json: chat_template.jinja, else
/// "chat_template" of tokenizer_config.json: of several that named "default", and "tool_use" for tools. None
/// where there is none.
[[nodiscard]] std::optional<ChatTemplate> chat_template_of(const std::filesystem::path& tokenizer);

/// "bos_token": "<s>" and so on, as the files beside a tokenizer have them.
[[nodiscard]] std::map<std::string, std::string> chat_tokens_of(const std::filesystem::path& tokenizer);

/// Megatron's templates for supervised fine-tuning.
struct NamedChatTemplate {
  std::string_view name, jinja;
};
[[nodiscard]] std::vector<NamedChatTemplate> megatron_chat_templates();
/// Throws Kind::usage with the names that there are.
[[nodiscard]] ChatTemplate megatron_chat_template(std::string_view name);

}  // namespace weft
