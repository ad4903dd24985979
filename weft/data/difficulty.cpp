// A metric in one word, read and written by one list of its keys.
#include "weft/data/difficulty.h"

#include <algorithm>
#include <functional>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/format.h"
#include "weft/base/nearest.h"

namespace weft::data {
namespace {

void read_value(std::string_view from, auto& to) { read_word(from, to); }
void read_value(std::string_view from, std::vector<std::int64_t>& to) {
  for (const std::string_view one : split(from, '/')) read_word(one, to.emplace_back());
}

std::string write_value(const auto& from) { return write_word(from); }
std::string write_value(const std::vector<std::int64_t>& from) {
  std::vector<std::string> words;
  for (const std::int64_t one : from) words.push_back(write_word(one));
  return join(words, "/");
}

template <class Use>
void each_key(DifficultyMetric& m, const Use& use) {
  use("samples", m.samples);
  use("values", m.values);
  use("by", m.by);
  use("clusters", m.clusters);
  use("curve", m.rule.curve);
  use("least", m.rule.least);
  use("most", m.rule.most);
  use("steps", m.rule.steps);
  use("multiple", m.rule.multiple);
  use("root", m.rule.root);
  use("levels", m.rule.lengths);
  use("until", m.rule.until);
}

void read_key(DifficultyMetric& m, std::string_view key, std::string_view value) {
  bool known = false;
  std::vector<std::string_view> keys;
  each_key(m, [&](std::string_view name, auto& to) {
    keys.push_back(name);
    if (name != key) return;
    known = true;
    try {
      to = {};
      read_value(value, to);
    } catch (const Error& e) {
      fail(e.kind(), "metric ", m.name, ": ", key, ": ", e.what());
    }
  });
  if (!known) fail(Kind::usage, "metric ", m.name, ": there is no key ", key, did_you_mean(key, keys));
}

void check_levels(const DifficultyMetric& m) {
  const LengthRule& rule = m.rule;
  if (rule.lengths.empty() || rule.until.size() + 1 != rule.lengths.size())
    fail(Kind::usage, "metric ", m.name, ": ", rule.lengths.size(), " levels and ", rule.until.size(),
         " steps in until: each level but the last has a last step");
  for (std::size_t i = 0; i < rule.until.size(); ++i)
    if (rule.until[i] <= (i == 0 ? 0 : rule.until[i - 1]))
      fail(Kind::usage, "metric ", m.name, ": steps in until begin at 1 and grow, found ", rule.until[i]);
  if (std::ranges::min(rule.lengths) < 0)
    fail(Kind::usage, "metric ", m.name, ": a level is ", std::ranges::min(rule.lengths), ", below 0");
}

void check_curve(const DifficultyMetric& m) {
  const LengthRule& rule = m.rule;
  if (rule.steps < 1)
    fail(Kind::usage, "metric ", m.name, ": steps is ", rule.steps, ": after how many is it most?");
  if (rule.multiple < 1 || !(rule.root >= 0.01 && rule.root <= 100))
    fail(Kind::usage, "metric ", m.name, ": multiple ", rule.multiple, " and root ", rule.root,
         " are to be at least 1, and from 0.01 to 100");
  const std::int64_t levels = std::min((rule.most - rule.least) / rule.multiple, rule.steps);
  if (levels > Lengths::most_stairs)
    fail(Kind::usage, "metric ", m.name, ": ", levels, " levels, more than ", Lengths::most_stairs,
         ": take a larger multiple");
}

void check(const DifficultyMetric& m) {
  if (m.name.empty()) fail(Kind::usage, "a metric has no name: NAME:key=value,…");
  const bool clusters = m.clusters == Clustering::schedule_based;
  if (clusters && m.samples.empty())
    fail(Kind::usage, "metric ", m.name, " needs samples: the prefix of its index of samples by value");
  if (clusters && m.by == DifficultyBy::value && m.values.empty())
    fail(Kind::usage, "metric ", m.name, " needs values: the prefix of its index of values");
  if (m.rule.curve == LengthCurve::none)
    fail(Kind::usage, "metric ", m.name, " needs curve: fixed_linear, fixed_root or fixed_discrete");
  if (m.rule.least < 0 || m.rule.least > m.rule.most)
    fail(Kind::usage, "metric ", m.name, ": least ", m.rule.least, " and most ", m.rule.most,
         " are to be at least 0 and in this order");
  if (m.by == DifficultyBy::percentile && m.rule.most < 1)
    fail(Kind::usage, "metric ", m.name, ": most is ", m.rule.most, ": of how many parts are its shares?");
  if (m.rule.curve == LengthCurve::fixed_discrete)
    check_levels(m);
  else
    check_curve(m);
}

}  // namespace

DifficultyMetric read_metric(std::string_view word) {
  DifficultyMetric metric;
  const std::size_t colon = std::min(word.find(':'), word.size());
  metric.name = std::string(word.substr(0, colon));
  const std::string_view rest = word.substr(std::min(colon + 1, word.size()));
  for (const std::string_view pair : split(rest, ',')) {
    if (rest.empty()) break;
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos)
      fail(Kind::usage, "metric ", metric.name, ": '", pair, "' is not key=value");
    read_key(metric, pair.substr(0, equals), pair.substr(equals + 1));
  }
  check(metric);
  return metric;
}

std::string write_metric(const DifficultyMetric& metric) {
  DifficultyMetric usual, copy = metric;
  std::vector<std::string> built_in, pairs;
  each_key(usual, [&](std::string_view, auto& value) { built_in.push_back(write_value(value)); });
  std::size_t i = 0;
  each_key(copy, [&](std::string_view key, auto& value) {
    const std::string word = write_value(value);
    if (word.find(',') != std::string::npos)
      fail(Kind::usage, "metric ", metric.name, ": ", key, " ", word,
           " has a comma in it: give it another name");
    if (word != built_in[i++]) pairs.push_back(text(key, "=", word));
  });
  return text(metric.name, ":", join(pairs, ","));
}

}  // namespace weft::data
