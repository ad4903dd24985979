// The chat templates that Megatron's SFTTokenizer has by name, in our own layout: tests/oracle/chat.py holds
// them against the originals.
#include <array>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/nearest.h"
#include "weft/text/chat.h"

namespace weft {

namespace {

constexpr std::array templates{
    NamedChatTemplate{"nemotron-h-aligned", R"({%- for message in messages -%}
  {%- set words = message['content'] -%}
  {%- if message['role'] == 'system' -%}
    {{- '<SPECIAL_10>System\n' ~ words.strip() ~ '\n' -}}
  {%- elif message['role'] == 'user' -%}
    {{- '<SPECIAL_11>User\n' ~ words.strip() ~ '\n<SPECIAL_11>Assistant\n' -}}
  {%- elif message['role'] == 'assistant' -%}
    {{- words.strip() ~ '\n' -}}
  {%- endif -%}
{%- endfor -%})"},
    NamedChatTemplate{"nemotron-nano-v2", R"({%- macro plain(words) -%}
  {{- words.replace('/think', '').replace('/no_think', '').strip() -}}
{%- endmacro -%}
{%- for message in messages -%}
  {%- if message['role'] == 'system' -%}
    {{- '<SPECIAL_10>System\n' ~ plain(message['content']) ~ '\n' -}}
  {%- elif message['role'] == 'user' -%}
    {{- '<SPECIAL_11>User\n' ~ plain(message['content']) ~ '\n' -}}
  {%- elif message['role'] == 'assistant' -%}
    {{- '<SPECIAL_11>Assistant\n' ~ message['content'].strip() ~ '\n<SPECIAL_12>\n' -}}
  {%- endif -%}
{%- endfor -%})"},
    NamedChatTemplate{"identity",
                      R"({%- for message in messages -%}{{- message['content'] -}}{%- endfor -%})"}};

}  // namespace

std::vector<NamedChatTemplate> megatron_chat_templates() { return {templates.begin(), templates.end()}; }

ChatTemplate megatron_chat_template(std::string_view name) {
  std::vector<std::string_view> names;
  for (const NamedChatTemplate& one : templates) {
    if (one.name == name) return ChatTemplate({.jinja = std::string(one.jinja), .name = std::string(name)});
    names.push_back(one.name);
  }
  fail(Kind::usage, "chat template: '", name, "' is none of ", join(names, ", "), did_you_mean(name, names));
}

}  // namespace weft
