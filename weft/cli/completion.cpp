#include "weft/cli/completion.h"

#include <algorithm>
#include <functional>
#include <iostream>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/verbs.h"

namespace weft::cli {
namespace {

// Flags only: a topic may also name another command. Of "--tee, -t" the first name is enough.
void each_flag(const Verb& verb, const std::function<void(const Option&)>& act) {
  for (const Topic& topic : verb.help().topics)
    for (Option option : topic.options) {
      option.flag = option.flag.substr(0, option.flag.find(','));
      if (option.flag.starts_with("--")) act(option);
    }
}

bool is_file(const Option& option) {
  return option.value.find("FILE") != std::string::npos || option.value.starts_with("TEXT");
}

// "a|b|c" is a list of words to choose from; N, MIN:MAX and what else is in capitals stands for others.
std::string choices(const Option& option) {
  std::string out;
  if (option.value.find('|') == std::string::npos) return out;
  std::string_view value = option.value;
  value = value.substr(0, value.find(' '));  // what follows says that there may be several
  for (const std::string_view word : split(value, '|'))
    if (std::ranges::none_of(word, [](char c) { return 'A' <= c && c <= 'Z'; }))
      out += text(out.empty() ? "" : " ", word);
  return out;
}

bool is_plain(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) {
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '-';
  }) && word.front() != '-';
}

/// What may stand behind a verb, as its usage has it: "weft data sample|why …; weft data pack …".
std::string first_words(const Verb& verb) {
  const std::string usage = verb.help().usage, before = text("weft ", verb.name, " ");
  std::string out;
  for (std::size_t at = usage.find(before); at != std::string::npos; at = usage.find(before, at)) {
    at += before.size();
    std::string_view list = std::string_view(usage).substr(at, usage.find(' ', at) - at);
    if (list.find('|') != std::string_view::npos && list.starts_with('['))
      list = list.substr(1, list.find(']') - 1);
    for (const std::string_view word : split(list, '|'))
      if (is_plain(word)) out += text(out.empty() ? "" : " ", word);
  }
  return out;
}

std::string names(std::span<const Verb> known) {
  std::string out;
  for (const Verb& verb : known) out += text(out.empty() ? "" : " ", verb.name);
  return out;
}

// Inside single quotes.
std::string quoted(std::string_view words, std::string_view escape) {
  std::string out;
  for (const char c : words) {
    if (escape.find(c) != std::string_view::npos) out += '\\';
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out;
}

int run_completion(Args args) {
  const std::string_view shell = args.size() == 1 ? args[0] : "";
  if (shell == "bash")
    std::cout << bash_completion(verbs());
  else if (shell == "zsh")
    std::cout << zsh_completion(verbs());
  else if (shell == "fish")
    std::cout << fish_completion(verbs());
  else
    fail(Kind::usage, "completion: name one shell, bash, zsh or fish");
  return static_cast<int>(Exit::done);
}

VerbHelp about_completion() {
  return {.usage = "weft completion bash|zsh|fish",
          .examples = {{"source <(weft completion bash)", "in this shell"},
                       {"weft completion fish > ~/.config/fish/completions/weft.fish", "for good"}},
          .topics = {}};
}

}  // namespace

std::string bash_completion(std::span<const Verb> known) {
  std::string flags, values, firsts;
  for (const Verb& verb : known) {
    std::string mine;
    if (const std::string words = first_words(verb); !words.empty())
      firsts += text("    ", verb.name, ") words='", words, "' ;;\n");
    each_flag(verb, [&](const Option& o) {
      mine += " " + o.flag;
      if (const std::string words = choices(o); !words.empty())
        values += text("    ", verb.name, ":", o.flag, ") words='", words, "' ;;\n");
    });
    flags += text("    ", verb.name, ") words='", mine, "' ;;\n");
  }
  return text("# Completion of weft for bash: source <(weft completion bash)\n_weft() {\n",
              "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
              "verb=${COMP_WORDS[1]} words=\n",
              "  if ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen -W '", names(known),
              "' -- \"$word\"))\n    return\n  fi\n", "  case $verb:$before in\n", values, "  esac\n",
              "  ((COMP_CWORD == 2)) && [[ $word != -* ]] && case $verb in\n", firsts, "  esac\n",
              "  [[ -z $words && $word == -* ]] && case $verb in\n", flags, "  esac\n",
              "  if [[ -n $words ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n",
              "  else COMPREPLY=($(compgen -f -- \"$word\")); fi\n}\ncomplete -o filenames -F _weft weft\n");
}

std::string zsh_completion(std::span<const Verb> known) {
  std::string listed, cases;
  for (const Verb& verb : known) {
    listed += text("    '", verb.name, ":", quoted(verb.purpose, ":"), "'\n");
    cases += text("    ", verb.name, ") _arguments");
    each_flag(verb, [&](const Option& o) {
      const std::string words = choices(o);
      const std::string action = !words.empty()    ? text(":value:(", words, ")")
                                 : is_file(o)      ? ":file:_files"
                                 : o.value.empty() ? ""
                                                   : ":value:";
      cases += text(" \\\n      '*", o.flag, "[", quoted(o.text, "[]:\\"), "]", action, "'");
    });
    if (const std::string words = first_words(verb); !words.empty())
      cases += text(" \\\n      '1:what:(", words, ")'");
    cases += text(" \\\n      '*:file:_files' ;;\n");
  }
  return text(
      "#compdef weft\n# Completion of weft for zsh: weft completion zsh > \"${fpath[1]}/_weft\"\nlocal -a "
      "verbs=(\n",
      listed,
      ")\nif ((CURRENT == 2)); then\n  _describe verb verbs\nelse\n  local verb=$words[2]\n  shift words\n",
      "  ((CURRENT--))\n  case $verb in\n", cases, "  esac\nfi\n");
}

std::string fish_completion(std::span<const Verb> known) {
  std::string out = "# Completion of weft for fish\ncomplete -c weft -f\n";
  for (const Verb& verb : known) {
    out += text("complete -c weft -n __fish_use_subcommand -a ", verb.name, " -d '",
                quoted(verb.purpose, "\\"), "'\n");
    if (const std::string words = first_words(verb); !words.empty())
      out += text("complete -c weft -n '__fish_seen_subcommand_from ", verb.name,
                  "; and not __fish_seen_subcommand_from ", words, "' -a '", words, "'\n");
    each_flag(verb, [&](const Option& o) {
      out += text("complete -c weft -n '__fish_seen_subcommand_from ", verb.name, "' -l ", o.flag.substr(2));
      if (const std::string words = choices(o); !words.empty())
        out += text(" -x -a '", words, "'");
      else if (is_file(o))
        out += " -r -F";
      else if (!o.value.empty())
        out += " -x";
      out += text(" -d '", quoted(o.text, "\\"), "'\n");
    });
  }
  return out;
}

Verb completion_verb() {
  return {"completion", "writes a completion script for a shell", run_completion, about_completion};
}

}  // namespace weft::cli
