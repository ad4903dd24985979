// The manual page: one section for each verb, from the same lists as help.
#include "weft/base/error.h"
#include "weft/cli/build.h"
#include "weft/cli/completion.h"

namespace weft::cli {
namespace {

// A line must not begin with a dot or a quote; a minus is a minus and not a hyphen.
std::string plain(std::string_view words) {
  std::string out;
  if (!words.empty() && (words[0] == '.' || words[0] == '\'')) out += "\\&";
  for (const char c : words) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string section(const Verb& verb) {
  const VerbHelp about = verb.help();
  std::string out = text(".SH ", "\"WEFT ", verb.name, "\"\n", plain(verb.purpose), ".\n.PP\n.B ",
                         plain(about.usage), "\n");
  for (const Example& e : about.examples)
    out += text(".PP\n", plain(e.what), ":\n.PP\n.nf\n.RS\n", plain(e.command), "\n.RE\n.fi\n");
  for (const Topic& topic : about.topics) {
    out += text(".SS \"", plain(topic.title), "\"\n");
    for (const Option& o : topic.options) {
      out += text(".TP\n.B ", plain(o.flag));
      if (!o.value.empty()) out += text(" \\fI", plain(o.value), "\\fR");
      out += text("\n", plain(o.text), "\n");
    }
  }
  return out;
}

}  // namespace

std::string man_page(std::span<const Verb> known) {
  std::string out = text(".TH WEFT 1 \"\" \"weft ", version_number(), "\" \"User Commands\"\n",
                         ".SH NAME\nweft \\- pretrains transformers across many ranks\n",
                         ".SH SYNOPSIS\n.B weft\n.I VERB\n[options]\n",
                         ".SH DESCRIPTION\nOne program with a verb for every task. It takes Megatron\\-LM's "
                         "flags as they are.\n",
                         ".SH \"EXIT STATUS\"\n.TP\n0\ndone\n.TP\n1\nthe run failed\n.TP\n2\na mistake in "
                         "the command or its files, said in one sentence\n",
                         ".TP\n3\nstopped on purpose, after saving\n.TP\n16, 17\na fault of the machine, "
                         "unconfirmed and confirmed\n");
  for (const Verb& verb : known) out += section(verb);
  return out;
}

}  // namespace weft::cli
