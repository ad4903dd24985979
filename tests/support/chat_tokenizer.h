// A tokenizer of letters with markers for conversations, and conversations, in files of a test's own folder.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary.h"

namespace weft::support {

/// ASCII, a byte a token, and markers that are one token each.
class ChatTokenizer {
 public:
  static constexpr const char* usual_template =
      "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
      "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif "
      "%}";

  explicit ChatTokenizer(const std::string& chat_template = usual_template,
                         const std::string& special = R"("eos_token": "<|im_end|>", "pad_token": "<unk>",
                                                         "unk_token": "<unk>")") {
    std::string words, added;
    const auto word = [&](const std::string& text) {
      words += (size_ == 0 ? "\"" : ", \"") + text + "\": " + std::to_string(size_);
      ++size_;
    };
    for (char letter = '!'; letter <= '~'; ++letter)
      word((letter == '"' || letter == '\\' ? "\\" : "") + std::string(1, letter));
    word("\xC4\xA0");  // a space
    word("\xC4\x8A");  // the end of a line
    for (const char* marker : {"<unk>", "<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<SPECIAL_233>",
                               "<|im_start|>", "<|im_end|>"}) {
      added += (added.empty() ? "" : ", ") + std::string(R"({"content": ")") + marker +
               R"(", "special": true, "id": )" + std::to_string(size_) + "}";
      word(marker);
    }
    file(
        "tokenizer.json",
        R"({"model": {"type": "BPE", "vocab": {)" + words + R"(}, "merges": []}, "added_tokens": [)" + added +
            R"(], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}})");
    file("tokenizer_config.json", "{" + special + "}");
    if (!chat_template.empty()) file("chat_template.jinja", chat_template);
  }

  std::string folder() const { return folder_.path().string(); }
  int size() const { return size_; }
  /// Writes a file beside the tokenizer and returns its path.
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

 private:
  TemporaryDirectory folder_;
  int size_ = 0;
};

/// Roles and contents in turn, without anything that JSON escapes.
inline std::string messages_of(const std::vector<std::string>& roles_and_contents) {
  std::string list;
  for (std::size_t i = 0; i + 1 < roles_and_contents.size(); i += 2)
    list += (i == 0 ? "" : ", ") + std::string(R"({"role": ")") + roles_and_contents[i] +
            R"(", "content": ")" + roles_and_contents[i + 1] + "\"}";
  return list;
}
inline std::string line_of_messages(const std::vector<std::string>& roles_and_contents) {
  return R"({"messages": [)" + messages_of(roles_and_contents) + "]}\n";
}

}  // namespace weft::support
