// Looks fields up in the table of flags, backwards.
#include "weft/cli/dialect/spelling.h"

#include <algorithm>
#include <optional>
#include <set>

#include "weft/cli/dialect/rows.h"
#include "weft/text/open.h"

namespace weft::cli {
namespace {

using dialect::Effect;
using dialect::Row;

std::string as_flag(std::string_view name) {
  std::string out = "--" + std::string(name);
  std::ranges::replace(out, '_', '-');
  return out;
}

/// Options that have the flag's own name: those of preparing data and of tokenizers, and one of the verb.
std::set<std::string, std::less<>> plain_options() {
  std::set<std::string, std::less<>> out{"append_eod",      "broken_lines",  "input",
                                         "json_keys",       "output_prefix", "partitions",
                                         "split_sentences", "workers",       "no_memory_check"};
  TokenizerOptions options;
  const Fields fields(options);
  for (const auto& field : fields.all()) out.insert(field->path());
  return out;
}

class Speller {
 public:
  Speller(const Command* command) : command_(command), plain_(plain_options()) {
    for (dialect::Group& group : dialect::table())
      for (Row& row : group.rows)
        if (row.treatment == dialect::Treatment::honored) rows_.push_back(std::move(row));
    // What needs arithmetic, or is another program's word, speaks last.
    std::stable_partition(rows_.begin(), rows_.end(), [](const Row& row) {
      return row.parse == nullptr && !row.flag.starts_with("deepspeed") && !row.flag.starts_with("ds-") &&
             row.flag.find("fsdp") == std::string_view::npos;
    });
  }

  std::string operator()(std::string_view message) const {
    std::string out;
    for (;;) {
      const std::size_t open = message.find('{'), close = message.find('}', open);
      if (close == std::string_view::npos) return out.append(message);
      const std::optional<std::string> word = setting(message.substr(open + 1, close - open - 1));
      // What is no setting may begin before one: its brace alone is passed over.
      const std::size_t end = word ? close + 1 : open + 1;
      out.append(word ? message.substr(0, open) : message.substr(0, end)).append(word.value_or(""));
      message.remove_prefix(end);
    }
  }

 private:
  std::optional<std::string> setting(std::string_view name) const {
    if (plain_.contains(name)) return as_flag(name);
    const std::size_t equals = name.find('=');
    if (equals == std::string_view::npos) return as_written(name);
    return with_value(name.substr(0, equals), name.substr(equals + 1));
  }

  std::optional<std::string> as_written(std::string_view path) const {
    if (command_ == nullptr) return first_flag(path);
    const auto used = command_->flags.find(path);
    if (used == command_->flags.end() || switches_off(used->second, path)) return first_flag(path);
    const Field* field = command_->fields.find(path);
    const bool key = field != nullptr && field->origin() == Origin::file;
    return (key ? "" : "--") + std::string(used->second);
  }

  /// A message about a switch means it switched on: the flag for that is another one.
  bool switches_off(std::string_view flag, std::string_view path) const {
    return std::ranges::any_of(rows_, [&](const Row& row) {
      return row.flag == flag && std::ranges::any_of(row.effects, [&](const Effect& effect) {
               return effect.path == path && effect.value == "false";
             });
    });
  }

  /// One that takes any word, else one that switches on, else one that sets another fixed value.
  const Row* first_row(std::string_view path) const {
    const Row* fixed = nullptr;
    bool is_on = false;
    for (const Row& row : rows_)
      for (const Effect& effect : row.effects) {
        if (effect.path != path) continue;
        if (row.arity != Arity::none) return &row;
        if (fixed != nullptr && (is_on || effect.value != "true")) continue;
        fixed = &row;
        is_on = effect.value == "true";
      }
    return fixed;
  }

  std::optional<std::string> first_flag(std::string_view path) const {
    const Row* row = first_row(path);
    return row ? std::optional("--" + std::string(row->flag)) : std::nullopt;
  }

  /// Whether a flag that needs arithmetic and no word sets this, where nothing else is said.
  static bool comes_to(const Row& row, std::string_view path, std::string_view value) {
    if (row.parse == nullptr || row.arity != Arity::none) return false;
    if (std::ranges::find(row.effects, path, &Effect::path) == row.effects.end()) return false;
    TrainConfig config;
    Fields fields(config);
    row.parse(fields, {}, Origin::command_line);
    const Field& field = fields.at(path);
    return field.origin() != Origin::built_in && field.write() == std::vector{std::string(value)};
  }

  /// A flag that sets just this; switches that set more besides are taken where there is none.
  std::optional<std::string> fixed_value(std::string_view path, std::string_view value, bool alone) const {
    for (const Row& row : rows_)
      for (const Effect& effect : row.effects) {
        const std::string_view sets = effect.value.empty() ? effect.word : effect.value;
        if (effect.path != path || sets != value) continue;
        if (alone && row.arity == Arity::none && row.effects.size() > 1) continue;
        return "--" + std::string(row.flag) + (effect.word.empty() ? "" : " " + std::string(effect.word));
      }
    return std::nullopt;
  }

  std::optional<std::string> with_value(std::string_view path, std::string_view value) const {
    for (const bool alone : {true, false})
      if (auto flag = fixed_value(path, value, alone)) return flag;
    for (const Row& row : rows_)
      if (comes_to(row, path, value)) return "--" + std::string(row.flag);
    const Row* row = first_row(path);
    if (row == nullptr || row->arity == Arity::none) return std::nullopt;
    return "--" + std::string(row->flag) + " " + std::string(value);
  }

  const Command* command_;
  std::set<std::string, std::less<>> plain_;
  std::vector<Row> rows_;
};

}  // namespace

std::string spelled(std::string_view message, const Command* command) {
  if (message.find('{') == std::string_view::npos) return std::string(message);
  return Speller(command)(message);
}

std::function<std::string(std::string_view)> wording(const Command& command) { return Speller(&command); }

}  // namespace weft::cli
