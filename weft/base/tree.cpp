#include "weft/base/tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr int deepest = 100;
constexpr std::size_t most_nodes = 1 << 20;

class YamlReader {
 public:
  explicit YamlReader(const std::string& who) : who_(who) {}
  Tree read(const YAML::Node& node, int depth) {
    if (depth > deepest || ++nodes_ > most_nodes)
      fail(Kind::data, who_, ": nested too deeply, or too large by its aliases, in line ",
           node.Mark().line + 1);
    if (node.IsScalar()) return scalar(node);
    if (node.IsSequence()) return sequence(node, depth);
    if (node.IsMap()) return map(node, depth);
    return {};
  }

 private:
  static Tree scalar(const YAML::Node& node) {
    Tree out = Tree::plain(node.Scalar());
    out.quoted = node.Tag() == "!";
    return out;
  }
  Tree sequence(const YAML::Node& node, int depth) {
    Tree out = Tree::list({});
    for (const auto& item : node) out.items.push_back(read(item, depth + 1));
    return out;
  }
  Tree map(const YAML::Node& node, int depth) {
    Tree out = Tree::map({});
    std::set<std::string> seen;
    for (const auto& item : node) {
      const int line = item.first.Mark().line + 1;
      if (!item.first.IsScalar()) fail(Kind::data, who_, ": a key that is no word, in line ", line);
      const std::string& key = item.first.Scalar();
      if (!seen.insert(key).second)
        fail(Kind::data, who_, ": ", key, " is given twice, the second time in line ", line);
      out.pairs.emplace_back(key, read(item.second, depth + 1));
    }
    return out;
  }
  const std::string& who_;
  std::size_t nodes_ = 0;
};

/// Hears that a document is there, and nothing of what stands in it.
class Deaf final : public YAML::EventHandler {
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}
};

/// How many documents there are, or two if there are more: behind a map that ends with a comma yaml-cpp finds
/// empty ones without end.
int documents_in(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  Deaf deaf;
  int count = 0;
  while (count < 2 && parser.HandleNextDocument(deaf)) ++count;
  return count;
}

/// Whether it may stand without quotes and is read as the same word.
bool stands_plain(std::string_view word) {
  constexpr std::string_view marks = "-_./+";
  return !word.empty() && word != "-" && word.front() != '.' && word.front() != '+' &&
         std::ranges::all_of(word,
                             [&](char c) {
                               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                                      (c >= 'A' && c <= 'Z') || marks.find(c) != marks.npos;
                             }) &&
         !word.starts_with("---");
}

/// Words that YAML takes for something else than a string.
bool means_more(std::string_view word) {
  static constexpr std::string_view known[] = {"true", "false", "yes", "no",  "on", "off",
                                               "null", "y",     "n",   "nan", "inf"};
  std::string small;
  for (const char c : word) small += char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return std::ranges::find(known, small) != std::end(known) || (word[0] >= '0' && word[0] <= '9') ||
         word[0] == '-';
}

std::string in_quotes(std::string_view word) {
  std::string out = "\"";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (byte < 0x20 || byte == 0x7f)
      out += text("\\x", "0123456789abcdef"[byte >> 4U], "0123456789abcdef"[byte & 15U]);
    else
      out += c;
  }
  return out + "\"";
}

std::string spelled(const Tree& word) {
  const bool plain = stands_plain(word.text) && !(word.quoted && means_more(word.text));
  return plain ? word.text : in_quotes(word.text);
}

std::string key_of(const std::string& key) { return spelled(Tree(key)); }

/// On the line where it begins, or behind it.
bool fits_a_line(const Tree& tree) {
  return (tree.is == Tree::Is::list && tree.items.empty()) ||
         (tree.is == Tree::Is::map && tree.pairs.empty()) || tree.is == Tree::Is::word ||
         tree.is == Tree::Is::none;
}

std::string in_a_line(const Tree& tree) {
  if (tree.is == Tree::Is::list) return "[]";
  if (tree.is == Tree::Is::map) return "{}";
  return tree.is == Tree::Is::word ? spelled(tree) : "null";
}

// A map or list inside a list begins on the line of its dash.
void write(std::string& to, const Tree& tree, std::size_t indent) {
  const std::string margin(indent, ' ');
  bool first = true;
  for (const Tree& item : tree.items) {
    to += first ? "- " : margin + "- ";
    first = false;
    fits_a_line(item) ? void(to += in_a_line(item) + "\n") : write(to, item, indent + 2);
  }
  for (const auto& [key, value] : tree.pairs) {
    to += (first ? "" : margin) + key_of(key) + ":";
    first = false;
    if (fits_a_line(value)) {
      to += " " + in_a_line(value) + "\n";
      continue;
    }
    to += "\n" + std::string(indent + 2, ' ');
    write(to, value, indent + 2);
  }
}

}  // namespace

Tree Tree::plain(std::string word) {
  Tree out(std::move(word));
  out.quoted = false;
  return out;
}

Tree Tree::list(std::vector<Tree> items) {
  Tree out;
  out.is = Is::list;
  out.items = std::move(items);
  return out;
}

Tree Tree::words(const std::vector<std::string>& strings) {
  Tree out = list({});
  for (const std::string& one : strings) out.items.emplace_back(one);
  return out;
}

Tree Tree::map(std::vector<std::pair<std::string, Tree>> pairs) {
  Tree out;
  out.is = Is::map;
  out.pairs = std::move(pairs);
  return out;
}

const Tree* Tree::find(std::string_view key) const {
  const auto found = std::ranges::find_if(pairs, [&](const auto& pair) { return pair.first == key; });
  return found == pairs.end() ? nullptr : &found->second;
}

Tree* Tree::find(std::string_view key) { return const_cast<Tree*>(std::as_const(*this).find(key)); }

Tree& Tree::operator[](std::string_view key) {
  if (Tree* found = find(key)) return *found;
  is = Is::map;
  return pairs.emplace_back(std::string(key), Tree()).second;
}

void Tree::erase(std::string_view key) {
  std::erase_if(pairs, [&](const auto& pair) { return pair.first == key; });
}

Tree read_yaml(std::string_view text, const std::string& who) {
  const std::string held(text);
  YAML::Node root;
  int documents = 0;
  try {
    documents = documents_in(held);
    root = YAML::Load(held);
  } catch (const YAML::Exception& e) {
    fail(Kind::data, who, ": not YAML: ", e.what());
  }
  if (documents != 1)
    fail(Kind::data, who, ": ", documents == 0 ? "no document" : "more than one document",
         ", where one was expected");
  return YamlReader(who).read(root, 0);
}

std::string write_yaml(const Tree& tree) {
  if (fits_a_line(tree)) return in_a_line(tree) + "\n";
  std::string out;
  write(out, tree, 0);
  return out;
}

}  // namespace weft
