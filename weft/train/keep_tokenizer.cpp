// Copies have the names of the originals, so that what looks for a file beside another one finds it.
#include "weft/train/keep_tokenizer.h"

#include <algorithm>
#include <array>

#include "weft/base/format.h"
#include "weft/checkpoint/step.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr const char* folder = "tokenizer";
constexpr std::array beside_json{"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                                 "chat_template.jinja", "additional_chat_templates/tool_use.jinja"};

// Two files of one name from two directories stay two.
std::string name_among(const std::vector<std::string>& taken, const fs::path& file) {
  const std::string plain = checkpoint::plain_name(file.filename().string());
  std::string name = plain;
  for (int k = 2; std::ranges::find(taken, name) != taken.end(); ++k) name = text(k, '_', plain);
  return name;
}

/// The settings that name files, in the order of the fact's.
std::array<std::string*, 3> named_by(TokenizerConfig& c) { return {&c.model, &c.vocab_file, &c.merge_file}; }

// The copy of what the checkpoint's run was given in the same place, whatever it was called there.
fs::path copy_of(std::size_t place, const checkpoint::OpenStep& step, RunFacts& facts) {
  std::size_t before = 0, all = 0;
  const auto given = named_by(facts.configuration.data.tokenizer);
  for (std::size_t i = 0; i < given.size(); ++i) {
    all += given[i]->empty() ? 0 : 1;
    before += given[i]->empty() || i >= place ? 0 : 1;
  }
  const RunTokenizer& kept = facts.tokenizer;
  if (given[place]->empty() || kept.files.size() != all || kept.copies.size() < all) return {};
  return step.attached(folder, kept.copies[before]);
}

}  // namespace

std::vector<checkpoint::Attached> keep_tokenizer(RunTokenizer& fact) {
  std::vector<fs::path> files(fact.files.begin(), fact.files.end());
  if (files.size() == 1 && files.front().extension() == ".json" && fact.type != "TikTokenizer")
    for (const char* name : beside_json) files.push_back(files.front().parent_path() / name);
  if (!files.empty()) files.push_back(files.front().parent_path() / "generation_config.json");
  std::vector<checkpoint::Attached> out;
  fact.copies.clear();
  for (const fs::path& file : files) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) continue;
    fact.copies.push_back(name_among(fact.copies, file));
    out.push_back({folder, fact.copies.back(), read_file(file)});
  }
  return out;
}

std::vector<std::string> take_kept_tokenizer(const fs::path& step, TokenizerConfig& tokenizer) {
  std::vector<std::string> said;
  const auto wanted = named_by(tokenizer);
  for (std::size_t place = 0; place < wanted.size(); ++place) {
    std::error_code error;
    std::string& file = *wanted[place];
    if (file.empty() || fs::exists(file, error)) continue;
    const checkpoint::OpenStep opened(step);
    RunFacts facts = facts_from_json(opened.facts(), step.string());
    if (facts.tokenizer.type != tokenizer.type) continue;
    const fs::path copy = copy_of(place, opened, facts);
    if (copy.empty()) continue;
    said.push_back(text("tokenizer: ", file, " is not there; ", copy.string(),
                        ", which the checkpoint keeps, is used instead"));
    file = copy.string();
  }
  return said;
}

}  // namespace weft
