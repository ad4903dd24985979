// Every flag of training with values that nobody means: none may crash, and what is wrong is said by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "tests/cli/told.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary.h"
#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dialect/rows.h"

using namespace weft;
using namespace weft::cli;
using dialect::Row;
using dialect::Treatment;
using ::testing::HasSubstr;
using weft::testing::every;

namespace {

constexpr std::array odd_words{"0", "-1", "NaN", "inf", "1000000000000000000", "word"};

/// In a place of its own: some words are names of files.
class Elsewhere {
 public:
  Elsewhere() : before_(std::filesystem::current_path()) { std::filesystem::current_path(folder_.path()); }
  ~Elsewhere() { std::filesystem::current_path(before_); }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

 private:
  support::TemporaryDirectory folder_;
  std::filesystem::path before_;
};

/// The model, data and length of a tiny run, but for what the flag itself says.
std::vector<std::string> tiny_but(std::string_view sets) {
  std::vector<std::string> words = {
      "gpt",         "--hidden-size=16",   "--num-attention-heads=2", "--micro-batch-size=1", "--lr=1e-3",
      "--threads=1", "--data-order=keyed", "--exit-interval=1",       "--vocab-size=32"};
  // Two flags that set the same, or say the same, contradict each other, whatever they say.
  if (sets != "model.layers") words.emplace_back("--num-layers=2");
  if (sets != "model.sequence") words.emplace_back("--seq-length=8");
  if (!sets.starts_with("length.")) words.emplace_back("--train-iters=2");
  if (!sets.starts_with("data.") || !sets.ends_with("paths")) words.emplace_back("--mock-data");
  return words;
}

/// A run of one step. What may not be, or cannot be had, ends before it; the rest goes through it.
Told tried(const Row& row, const std::string& value) {
  const auto& all = verbs();
  const auto train = std::find_if(all.begin(), all.end(), [](const Verb& v) { return v.name == "train"; });
  std::vector<std::string> words = tiny_but(row.effects[0].path);
  words.push_back(text("--", row.flag, "=", value));
  return told(*train, words);
}

std::vector<Row> honored() {
  std::vector<Row> out;
  for (auto& group : dialect::table())
    for (auto& row : group.rows)
      if (row.treatment == Treatment::honored && row.arity != Arity::none) out.push_back(row);
  return out;
}

std::vector<Row> some_honored() {
  const std::vector<Row> rows = honored();
  std::vector<Row> out;
  for (std::size_t i = 0; i < rows.size(); i += std::size_t(every(5))) out.push_back(rows[i]);
  return out;
}

/// The field that takes the flag's own words; none where words are looked up or computed with.
const Field* field_of(const Row& row, const Fields& fields) {
  const bool plain = row.parse == nullptr && row.effects[0].word.empty() && !row.effects[0].path.empty();
  return plain ? &fields.at(row.effects[0].path) : nullptr;
}

bool is_number(const Field& field) {
  return field.kind() == FieldKind::integer || field.kind() == FieldKind::real;
}

}  // namespace

TEST(Ranges, are_declared_for_every_number_of_a_run) {
  TrainConfig config;
  const Fields fields(config);
  for (const auto& field : fields.all()) {
    if (!is_number(*field)) continue;
    EXPECT_TRUE(field->legal()) << field->path() << " takes any number";
  }
}

TEST(Ranges, hold_the_built_in_values_that_a_person_may_repeat) {
  TrainConfig config;
  const Fields fields(config);
  for (const auto& field : fields.all())
    for (const std::string& word : field->write()) {
      if (!is_number(*field) || word == "0") continue;  // a size that has no default is zero
      EXPECT_NO_THROW(field->read(std::vector{word}, Origin::file));
    }
}

TEST(Ranges, are_kept_by_every_flag_whatever_it_is_given) {
  const Elsewhere elsewhere;
  TrainConfig config;
  const Fields fields(config);
  int refused = 0;
  for (const Row& row : some_honored())
    for (const std::string value : odd_words) {
      const Told t = tried(row, value);
      ASSERT_TRUE(t.status == 0 || t.status == 2 || t.status == 3)
          << row.flag << " " << value << ": " << t.status << " " << t.err;
      const Field* field = field_of(row, fields);
      if (field == nullptr || !is_number(*field)) continue;
      const bool is_word = value == "word";
      double number = 0;
      if (!is_word) read_word(value == "NaN" ? "nan" : value, number);
      if (!is_word && field->legal()->holds(number)) continue;  // the reason why it may pass
      EXPECT_EQ(t.status, 2) << row.flag << " " << value;
      EXPECT_THAT(t.err, HasSubstr(text("--", row.flag, ": '", value, "' is "))) << row.flag;
      ++refused;
    }
  EXPECT_GT(refused, 300 / every(5));
}

/// The largest number that a flag takes, where that is an end of its range. So many threads would be started,
/// and so many layers fit.
std::optional<std::string> largest(const Row& row, const Fields& fields) {
  const Field* field = field_of(row, fields);
  if (field == nullptr || !is_number(*field) || field->list()) return std::nullopt;
  const std::string& path = field->path();
  const bool left_out = path == "run.ranks" || path == "run.threads" || path == "model.layers";
  const bool whole = field->kind() == FieldKind::integer && field->legal()->most < 1e16;
  return whole && !left_out ? std::optional(write_word(std::int64_t(field->legal()->most))) : std::nullopt;
}

// What is too large for this machine is said before it is taken, and what is too large for the model by its
// rules.
TEST(Ranges, may_be_used_to_their_ends) {
  const Elsewhere elsewhere;
  TrainConfig config;
  const Fields fields(config);
  int ran = 0;
  for (const Row& row : some_honored()) {
    const auto value = largest(row, fields);
    if (!value) continue;
    const Told t = tried(row, *value);
    EXPECT_TRUE(t.status == 0 || t.status == 2 || t.status == 3)
        << row.flag << " " << *value << ": " << t.err;
    ran += t.status != 2;
  }
  EXPECT_GT(ran, 40 / every(5));
}

// What has no effect here takes any word and says so; what weft cannot do, or another program reads, is
// refused.
TEST(Ranges, are_nobodys_where_a_flag_sets_nothing) {
  int sent = 0;
  for (const auto& group : dialect::table())
    for (const Row& row : group.rows) {
      if (row.treatment == Treatment::honored || row.arity == Arity::none) continue;
      for (const std::string_view value : odd_words) {
        const std::string words = text("--", row.flag, "=", value);
        std::string said;
        try {
          said = join(read_command(std::vector<std::string_view>{words})->notices, "\n");
        } catch (const Error& e) {
          EXPECT_EQ(e.kind(), Kind::usage) << words;
          said = e.what();
        }
        EXPECT_THAT(said, HasSubstr(text("--", row.flag))) << words;
        ++sent;
      }
    }
  EXPECT_GT(sent, 1500);
}

TEST(Ranges, say_the_flag_what_was_found_and_what_is_legal) {
  const auto said = [](const std::string& flag, const std::string& value) {
    for (const Row& row : honored())
      if (row.flag == flag) return tried(row, value).err;
    return std::string("no such flag");
  };
  EXPECT_EQ(said("log-interval", "0"), "--log-interval: '0' is not a whole number from 1 to 2147483647\n");
  EXPECT_EQ(said("lr", "nan"), "--lr: 'nan' is not a finite number from 0 to 1000000\n");
  EXPECT_EQ(said("adam-eps", "0"), "--adam-eps: '0' is not a finite number above 0\n");
  EXPECT_EQ(said("adam-beta1", "1"), "--adam-beta1: '1' is not a finite number from 0 to below 1\n");
  EXPECT_EQ(said("clip-grad", "-1"), "--clip-grad: '-1' is not a finite number of 0 or more\n");
  EXPECT_EQ(said("hidden-size", "0"), "--hidden-size: '0' is not a whole number from 1 to 2147483647\n");
  EXPECT_EQ(said("seed", "-1"), "--seed: '-1' is not a whole number from 0 to 4294967295\n");
  EXPECT_EQ(said("window-size", "-5,0"),
            "--window-size: a window reaches 0 or more to the left (-1: all), found -5\n");
}
