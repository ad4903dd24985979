#include "weft/cli/dialect.h"

#include <algorithm>
#include <functional>
#include <map>

#include "weft/base/error.h"
#include "weft/base/settings_file.h"
#include "weft/cli/dialect/deepspeed.h"
#include "weft/cli/dialect/rows.h"
#include "weft/train/resume.h"

namespace weft::cli {
namespace {

using dialect::Effect;
using dialect::Row;
using dialect::Treatment;

// Flags of the verb itself, after those of the table.
constexpr Flag own[] = {
    {"config"}, {"dry-run", Arity::none}, {"json", Arity::none}, {"no-memory-check", Arity::none}};
enum Own : std::size_t { config_file, dry_run, as_json, no_memory_check };

/// Beginnings of a flag stand for it where it can be meant.
bool may_be_cut(Treatment treatment) {
  return treatment != Treatment::foreign && treatment != Treatment::gone;
}

class CommandReader {
 public:
  CommandReader(Command& command) : command_(command) {
    for (dialect::Group& group : dialect::table())
      for (Row& row : group.rows) {
        flags_.push_back({row.flag, row.arity, may_be_cut(row.treatment)});
        rows_.push_back(std::move(row));
      }
    flags_.insert(flags_.end(), std::begin(own), std::end(own));
  }

  void read(Args args, const CheckpointSettings& checkpoint) {
    Split split = split_flags(flags_, args);
    command_.others = std::move(split.others);
    std::string file;
    std::erase_if(split.flags, [&](const Given& given) { return take_own(given, file); });
    if (!file.empty()) apply_file(file);
    // Where to load from must be known before the checkpoint's own settings, which the command line then
    // overrides.
    apply(split.flags, Origin::command_line);
    if (command_.config.checkpoint.use_args && checkpoint) {
      from_json(command_.fields, checkpoint(command_.config.checkpoint), Origin::checkpoint);
      apply(split.flags, Origin::command_line);
    }
    refuse();
    stage_of_file();
    agree();
    compare_experts(split.flags);
    settle();
    for (const auto& [why, flags] : without_effect_)
      command_.notices.push_back(text("no effect here: ", joined(flags), " (", why, ")"));
    if (command_.deepspeed)
      for (const std::string& notice : command_.deepspeed->notices) command_.notices.push_back(notice);
  }

 private:
  using Names = std::vector<std::string_view>;
  // The flag that set a field in this source, and to what.
  struct Setter {
    std::string_view flag;
    std::vector<std::string> words;
  };

  static std::string joined(const Names& flags) {
    std::string out;
    for (const std::string_view flag : flags) out += text(out.empty() ? "--" : ", --", flag);
    return out;
  }

  bool take_own(const Given& given, std::string& file) {
    if (given.flag < rows_.size()) return false;
    if (given.flag == rows_.size() + config_file) file = given.words[0];
    if (given.flag == rows_.size() + dry_run) command_.dry_run = true;
    if (given.flag == rows_.size() + as_json) command_.json = true;
    if (given.flag == rows_.size() + no_memory_check) command_.memory_check = false;
    return true;
  }

  std::vector<Given> from_file(const std::string& file) {
    std::vector<Given> out;
    for (Setting& setting : read_settings(file)) {
      try {
        const std::string_view bare =
            std::string_view(setting.name).substr(setting.name.starts_with("--") ? 2 : 0);
        Given given{find_flag(flags_, bare), std::move(setting.words)};
        if (given.flag >= rows_.size())
          fail(Kind::usage, "--", own[given.flag - rows_.size()].name, " belongs on the command line");
        if (switched_on(given)) out.push_back(std::move(given));
      } catch (const Error& e) {
        fail(e.kind(), file, ": ", e.what());
      }
    }
    return out;
  }

  void apply_file(const std::string& file) {
    const std::vector<Given> settings = from_file(file);
    try {
      apply(settings, Origin::file);
    } catch (const Error& e) {
      fail(e.kind(), file, ": ", e.what());
    }
  }

  // A switch in a file is true or false; false is as if it were not there.
  bool switched_on(Given& given) const {
    const Flag& flag = flags_[given.flag];
    if (flag.arity != Arity::none) {
      if (flag.arity == Arity::one && given.words.size() != 1)
        fail(Kind::usage, "--", flag.name, " needs a value, found ", given.words.size());
      return true;
    }
    const std::string word = given.words.empty() ? "true" : given.words[0];
    if (word != "true" && word != "false")
      fail(Kind::usage, "--", flag.name, ": '", word, "' is neither true nor false");
    given.words.clear();
    return word == "true";
  }

  // DeepSpeed's file comes first, what needs arithmetic on other flags last.
  void apply(const std::vector<Given>& flags, Origin who) {
    std::map<std::string_view, Setter> setters;
    const auto is_file = [&](const Given& g) { return rows_[g.flag].parse == dialect::deepspeed; };
    for (const Given& given : flags)
      if (is_file(given)) take_deepspeed(given);
    for (const Given& given : flags)
      if (rows_[given.flag].parse == nullptr) treat(rows_[given.flag], given.words, who, setters);
    std::vector<const Given*> rest;
    for (const Given& given : flags)
      if (rows_[given.flag].parse != nullptr && !is_file(given)) rest.push_back(&given);
    std::ranges::stable_sort(rest, {}, [](const Given* given) { return given->flag; });
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (i + 1 == rest.size() || rest[i + 1]->flag != rest[i]->flag) run(*rest[i], who);  // the last wins
  }

  void take_deepspeed(const Given& given) {
    const Row& row = rows_[given.flag];
    try {
      command_.deepspeed = dialect::read_deepspeed_file(command_.fields, given.words[0]);
    } catch (const Error& e) {
      fail(e.kind(), "--", row.flag, ": ", e.what());
    }
    for (const dialect::KeySaid& said : command_.deepspeed->keys)
      if (!said.never) command_.flags[said.field] = said.key;
  }

  /// DeepSpeed's engine reads the file alone, and Megatron-DeepSpeed's --zero-stage is for what Megatron does
  /// around it, so people leave either as it is: theirs is the file's.
  void stage_of_file() {
    constexpr std::string_view field = "parallel.zero", flag = "zero-stage";
    const auto setter = command_.flags.find(field);
    if (!command_.deepspeed || setter == command_.flags.end() || setter->second != flag) return;
    for (const dialect::KeySaid& said : command_.deepspeed->keys) {
      Field& stage = command_.fields.at(field);
      if (said.field != field || stage.write() == said.words) continue;
      command_.notices.push_back(text("no effect here: --", flag, " ", spelled(stage.write()), " (", said.key,
                                      " ", spelled(said.words), " of ", command_.deepspeed->file,
                                      " is what DeepSpeed's engine reads)"));
      stage.read(said.words, Origin::file);
      setter->second = said.key;
    }
  }

  /// Flags and DeepSpeed's file may say the same, and nothing else. What neither of them changed is a rule's.
  void agree() const {
    if (!command_.deepspeed) return;
    for (const dialect::KeySaid& said : command_.deepspeed->keys) {
      const std::vector<std::string> now = command_.fields.at(said.field).write();
      const auto setter = command_.flags.find(said.field);
      const bool by_flag = setter != command_.flags.end() && flag_known(setter->second);
      if ((now == said.words) != said.never || !by_flag) continue;
      const std::string theirs = text(said.key, " of ", command_.deepspeed->file);
      if (said.never)
        fail(Kind::usage, "--", setter->second, " and ", theirs, " contradict each other: one sets ",
             said.field, " to ", spelled(now), ", and the other is false");
      fail(Kind::usage, "--", setter->second, " and ", theirs, " contradict each other: one sets ",
           said.field, " to ", spelled(now), ", the other to ",
           said.words.empty() ? "nothing" : spelled(said.words));
    }
  }
  /// What Megatron-DeepSpeed takes where nothing is said of experts is not what Megatron does.
  void compare_experts(const std::vector<Given>& flags) {
    struct Other {
      std::string_view path, flag;
    };
    constexpr Other others[] = {{"model.experts.router.chosen", "--topk 1"},
                                {"model.experts.router.capacity", "--moe-train-capacity-factor 1"},
                                {"model.experts.router.capacity_evaluating", "--moe-eval-capacity-factor 1"},
                                {"model.experts.router.least_rows", "--moe-min-capacity 4"},
                                {"model.experts.router.coefficients", "--moe-loss-coeff 0.1"},
                                {"model.experts.every", "--expert-interval 2"}};
    const bool theirs =
        std::ranges::any_of(flags, [&](const Given& g) { return rows_[g.flag].flag == "deepspeed"; });
    if (!theirs || command_.config.model.experts.count == 0) return;
    std::string unsaid;
    for (const Other& other : others)
      if (command_.fields.at(other.path).origin() == Origin::built_in)
        unsaid += text(unsaid.empty() ? "" : " ", other.flag);
    if (!unsaid.empty())
      command_.notices.push_back(
          text("Megatron-DeepSpeed's experts have other values where nothing is said, and these are "
               "Megatron-LM's here; for the same as there: ",
               unsaid));
  }
  bool flag_known(std::string_view name) const {
    return std::ranges::any_of(rows_, [&](const Row& row) { return row.flag == name; });
  }

  void run(const Given& given, Origin who) {
    const Row& row = rows_[given.flag];
    command_.flags[row.effects[0].path] = row.flag;
    try {
      row.parse(command_.fields, given.words, who);
    } catch (const Error& e) {
      fail(e.kind(), "--", row.flag, ": ", e.what());
    }
  }

  void treat(const Row& row, const std::vector<std::string>& words, Origin who,
             std::map<std::string_view, Setter>& setters) {
    if (row.flag == "is-hybrid-model" ||
        (row.flag == "spec" && !words.empty() && words.back().ends_with("_stack_spec")))
      command_.asks_for_hybrid = row.flag;
    switch (row.treatment) {
      case Treatment::honored:
        return honor(row, words, who, setters);
      case Treatment::no_effect:
        return remember(without_effect_, row.text, row.flag);
      case Treatment::refused:
      case Treatment::foreign:
        return remember(refused_, row.text, row.flag);
      case Treatment::gone:
        fail(Kind::usage, "--", row.flag, " is gone from Megatron-LM; write ", row.text);
    }
  }

  void honor(const Row& row, const std::vector<std::string>& words, Origin who,
             std::map<std::string_view, Setter>& setters) {
    if (words.size() == 1 && words[0].empty())
      remember(without_effect_, "its value is empty: is a variable of the script not set?", row.flag);
    bool known = false;
    for (const Effect& effect : row.effects) {
      const bool mine = effect.word.empty() ? !known || row.effects[0].word.empty()
                                            : !words.empty() && words[0] == effect.word;
      if (!mine) continue;
      known = true;
      if (!effect.refusal.empty()) return remember(refused_, effect.refusal, row.flag);
      if (!effect.path.empty()) set(row, effect, words, who, setters);
    }
    if (!known)
      fail(Kind::usage, "--", row.flag, ": '", words.empty() ? "" : words[0], "' is not one of ",
           choices(row));
    const bool one = std::adjacent_find(words.begin(), words.end(), std::not_equal_to<>()) == words.end();
    if (!row.effects[0].word.empty() && !one &&
        !std::ranges::all_of(words, [&](const auto& w) { return asks_for_nothing(row, w); }))
      fail(Kind::usage, "--", row.flag, ": one value holds for all layers, found ", words.size());
  }

  void set(const Row& row, const Effect& effect, const std::vector<std::string>& words, Origin who,
           std::map<std::string_view, Setter>& setters) {
    const auto fixed = effect.value.empty() ? words : std::vector{std::string(effect.value)};
    const auto [it, fresh] = setters.try_emplace(effect.path, Setter{row.flag, fixed});
    if (!fresh && it->second.flag != row.flag && it->second.words != fixed)
      fail(Kind::usage, "--", it->second.flag, " and --", row.flag, " contradict each other: one sets ",
           effect.path, " to ", spelled(it->second.words), ", the other to ", spelled(fixed));
    it->second = {row.flag, fixed};
    command_.flags[effect.path] = row.flag;
    try {
      command_.fields.at(effect.path).read(fixed, who);
    } catch (const Error& e) {
      fail(e.kind(), "--", row.flag, ": ", e.what());
    }
  }

  static std::string spelled(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) out += text(out.empty() ? "" : " ", word);
    return out;
  }

  static std::string choices(const Row& row) {
    std::string out;
    std::string_view last;
    for (const Effect& effect : row.effects)
      if (effect.word != last && effect.refusal.empty()) {
        out += text(out.empty() ? "" : ", ", effect.word);
        last = effect.word;
      }
    return out;
  }

  static void remember(std::vector<std::pair<std::string_view, Names>>& reasons, std::string_view why,
                       std::string_view flag) {
    auto at = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == why; });
    if (at == reasons.end()) at = reasons.insert(at, {why, {}});
    if (std::find(at->second.begin(), at->second.end(), flag) == at->second.end()) at->second.push_back(flag);
  }

  void refuse() const {
    std::string all;
    for (const auto& [what, flags] : refused_)
      all += text(all.empty() ? "" : "; ", what, ": ", joined(flags));
    if (!all.empty()) fail(Kind::usage, "weft cannot do this yet: ", all);
  }

  // Megatron's gelu is the tanh form only where it is fused with a bias.
  void settle() {
    Field& activation = command_.fields.at("model.activation");
    if (activation.origin() != Origin::built_in || command_.config.model.linear_bias) return;
    activation.read(std::vector<std::string>{"gelu_erf"}, Origin::derived);
  }

  Command& command_;
  std::vector<Row> rows_;
  std::vector<Flag> flags_;
  std::vector<std::pair<std::string_view, Names>> without_effect_, refused_;
};

}  // namespace

std::unique_ptr<Command> read_command(Args args, const CheckpointSettings& checkpoint) {
  auto command = std::make_unique<Command>();
  CommandReader(*command).read(args, checkpoint);
  return command;
}

void take_saved_seed(Command& command) {
  Field& seed = command.fields.at("run.seed");
  if (seed.origin() != Origin::built_in) return;
  const auto saved = seed_of_checkpoint(command.config.checkpoint);
  if (saved) seed.read(std::vector{write_word(*saved)}, Origin::checkpoint);
}

}  // namespace weft::cli
