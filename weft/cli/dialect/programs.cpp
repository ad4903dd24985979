// What Megatron's programs set before they read a flag.
#include "weft/cli/dialect.h"
#include "weft/model/kinds.h"

namespace weft::cli {

// pretrain_gpt.py, pretrain_bert.py and pretrain_t5.py; every other default is their parser's.
std::string_view usual_tokenizer(std::string_view model) {
  const auto kind = find_kind(model);
  return kind ? kind->usual_tokenizer : "";
}

void take_usual_tokenizer(Command& command, std::string_view model) {
  const TokenizerConfig& given = command.config.data.tokenizer;
  if (!given.type.empty() || (given.vocab_file.empty() && given.merge_file.empty())) return;
  command.fields.at("data.tokenizer.type")
      .read(std::vector{std::string(usual_tokenizer(model))}, Origin::derived);
}

}  // namespace weft::cli
