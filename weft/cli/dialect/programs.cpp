// What Megatron's programs set before they read a flag.
#include <algorithm>

#include "weft/cli/dialect.h"

namespace weft::cli {
namespace {

struct Program {
  std::string_view model, tokenizer;
};

// pretrain_gpt.py, pretrain_bert.py and pretrain_t5.py; every other default is their parser's.
constexpr Program programs[] = {
    {"gpt", "GPT2BPETokenizer"}, {"bert", "BertWordPieceLowerCase"}, {"t5", "BertWordPieceLowerCase"}};

}  // namespace

std::string_view usual_tokenizer(std::string_view model) {
  const auto at = std::find_if(std::begin(programs), std::end(programs),
                               [&](const Program& p) { return p.model == model; });
  return at == std::end(programs) ? "" : at->tokenizer;
}

void take_usual_tokenizer(Command& command, std::string_view model) {
  const TokenizerConfig& given = command.config.data.tokenizer;
  if (!given.type.empty() || (given.vocab_file.empty() && given.merge_file.empty())) return;
  command.fields.at("data.tokenizer.type")
      .read(std::vector{std::string(usual_tokenizer(model))}, Origin::derived);
}

}  // namespace weft::cli
