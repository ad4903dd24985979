// Short ways to write a row, and the table made of all groups.
#include "weft/cli/dialect/rows.h"

#include <algorithm>

namespace weft::cli::dialect {

std::string_view name(Treatment treatment) {
  switch (treatment) {
    case Treatment::honored:
      return "honored";
    case Treatment::no_effect:
      return "no effect here";
    case Treatment::refused:
      return "refused";
    case Treatment::gone:
      return "gone";
    case Treatment::foreign:
      return "foreign";
  }
  return "unknown";
}

bool asks_for_nothing(const Row& row, std::string_view word) {
  return std::ranges::any_of(row.effects, [&](const Effect& effect) {
    return effect.word == word && effect.path.empty() && effect.refusal.empty();
  });
}

Row value(std::string_view flag, std::string_view path, std::string_view help) {
  return {.flag = flag, .effects = {{.path = path}}, .text = help};
}

Row list(std::string_view flag, Arity arity, std::string_view path, std::string_view help) {
  return {.flag = flag, .arity = arity, .effects = {{.path = path}}, .text = help};
}

Row on(std::string_view flag, std::vector<Effect> effects, std::string_view help) {
  return {.flag = flag, .arity = Arity::none, .effects = std::move(effects), .text = help};
}

Row pick(std::string_view flag, Arity arity, std::vector<Effect> effects) {
  return {.flag = flag, .arity = arity, .effects = std::move(effects), .text = {}};
}

Row parsed(std::string_view flag, Arity arity, std::string_view path, Parse parse, std::string_view help) {
  return {.flag = flag, .arity = arity, .effects = {{.path = path}}, .text = help, .parse = parse};
}

Row no_effect(std::string_view flag, Arity arity, std::string_view why) {
  return {.flag = flag, .arity = arity, .treatment = Treatment::no_effect, .effects = {}, .text = why};
}

Row cannot(std::string_view flag, Arity arity, std::string_view what) {
  return {.flag = flag, .arity = arity, .treatment = Treatment::refused, .effects = {}, .text = what};
}

Row gone(std::string_view flag, std::string_view instead) {
  return {.flag = flag, .arity = Arity::any, .treatment = Treatment::gone, .effects = {}, .text = instead};
}

Group foreign(std::string_view title, std::string_view why, std::initializer_list<Flag> flags) {
  Group group{title, {}};
  for (const Flag& flag : flags)
    group.rows.push_back({.flag = flag.name,
                          .arity = flag.arity,
                          .treatment = Treatment::foreign,
                          .effects = {},
                          .text = why});
  return group;
}

std::vector<Group> table() {
  return {model(),         positions(),    remember(),      hybrid(),
          vocabulary(),    parallel(),     communication(), loop(),
          optimizer(),     precision(),    recompute(),     data(),
          checkpoint(),    logging(),      moe(),           megatron_deepspeed(),
          model_refused(), surroundings(), older(),         generation(),
          reinforcement(), multimodal(),   retrieval(),     tools()};
}

}  // namespace weft::cli::dialect
