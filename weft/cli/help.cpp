#include "weft/cli/help.h"

#include <algorithm>
#include <iostream>

#include "weft/base/error.h"
#include "weft/base/nearest.h"
#include "weft/cli/completion.h"
#include "weft/cli/dialect.h"
#include "weft/cli/verbs.h"

namespace weft::cli {
namespace {

constexpr std::size_t column = 34;
constexpr std::size_t text_width = 110;

std::string padded(std::string words, std::size_t to) {
  if (words.size() + 2 > to) return words.append("\n").append(to, ' ');
  return words.append(to - words.size(), ' ');
}

// Breaks at spaces so that lines stay within `text_width`; later lines start at `indent`.
std::string wrapped(std::string_view words, std::size_t indent) {
  std::string out;
  std::size_t used = indent;
  while (!words.empty()) {
    const auto space = std::min(words.find(' '), words.size());
    if (used > indent && used + space + 1 > text_width) {
      out += '\n';
      out.append(indent, ' ');
      used = indent;
    } else if (used > indent) {
      out += ' ';
      ++used;
    }
    out += words.substr(0, space);
    used += space;
    words.remove_prefix(std::min(space + 1, words.size()));
  }
  return out;
}

std::string line(const Option& option) {
  const std::string value = option.value.empty() ? "" : text(" ", option.value);
  return padded(text("  ", option.flag, value), column) + wrapped(option.text, column) + "\n";
}

int run_help(Args args) {
  if (args.empty()) {
    std::cout << overview(verbs());
    return static_cast<int>(Exit::done);
  }
  if (args[0] == "flags" || args[0] == "deepspeed" || args[0] == "--man") {
    std::cout << (args[0] == "flags"       ? dialect_markdown()
                  : args[0] == "deepspeed" ? deepspeed_markdown()
                                           : man_page(verbs()));
    return static_cast<int>(Exit::done);
  }
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs()) {
    names.push_back(verb.name);
    if (verb.name != args[0]) continue;
    std::cout << manual(verb);
    return static_cast<int>(Exit::done);
  }
  fail(Kind::usage, "help: '", args[0], "' is not a verb", did_you_mean(args[0], names),
       "; weft help lists them");
}

VerbHelp about_help() {
  return {.usage = "weft help [VERB | flags | deepspeed | --man]",
          .examples = {{"weft help train", "one verb's page"},
                       {"weft help flags", "every flag of Megatron-LM and what weft does about it"},
                       {"weft help deepspeed", "every key of DeepSpeed's configuration, the same"},
                       {"weft help --man > weft.1", "the manual page"}},
          .topics = {}};
}

}  // namespace

std::string overview(std::span<const Verb> known) {
  std::string out = "usage: weft VERB [options]\n\n";
  for (const Verb& verb : known) out += padded(text("  ", verb.name), 16) + wrapped(verb.purpose, 16) + "\n";
  return out + "\nweft help VERB shows examples and every option of a verb.\n";
}

std::string manual(const Verb& verb) {
  const VerbHelp about = verb.help();
  std::string out = text("weft ", verb.name, ": ", verb.purpose, "\n\nusage: ", about.usage, "\n");
  if (!about.examples.empty()) out += "\nexamples:\n";
  for (const Example& e : about.examples) out += text("  # ", e.what, "\n  ", e.command, "\n");
  for (const Topic& topic : about.topics) {
    out += text("\n", topic.title, ":\n");
    for (const Option& option : topic.options) out += line(option);
  }
  return out;
}

Verb help_verb() { return {"help", "shows examples and options of a verb", run_help, about_help}; }

}  // namespace weft::cli
