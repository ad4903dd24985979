// What the files beside tokenizer.json say of tokens: their names, and some that it lacks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/text/added.h"
#include "weft/text/huggingface.h"
#include "weft/text/pipeline.h"

namespace weft {

struct NamedTokens {
  std::map<std::string, std::string> named;  // "eos" -> "</s>"
  std::vector<AddedToken> numbered;          // by their numbers, which give their order and nothing else
  std::vector<AddedToken> said;              // those that have a name, which are special wherever they stand
  std::vector<AddedToken> further;
  bool all_numbered = false;  // those of tokenizer.json count as numbered, too
  bool split_special = false;
};

/// As transformers reads them: added_tokens_decoder of tokenizer_config.json, and where it has none,
/// special_tokens_map.json over it and added_tokens.json. Throws what is wrong with which file.
[[nodiscard]] NamedTokens read_named_tokens(const HuggingFaceFiles& files);

/// A numbered token changes how a known one is looked for; of the others those are added that no added token
/// spells. A word of the vocabulary keeps its id, and what is new comes behind all ids.
void add_named(const NamedTokens& tokens, PipelineParts& parts);

}  // namespace weft
