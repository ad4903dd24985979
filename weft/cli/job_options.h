// Options of weft job's verbs, by tables.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/base/nearest.h"
#include "weft/cli/verb.h"

namespace weft::cli {

template <class To>
struct JobOption {
  std::string_view name, value, help;  // without a value it is a switch
  void (*set)(To&, std::string_view who, std::string_view word);
};

/// Takes the option that `args` begin with, in either spelling, and gives back its name.
template <class To>
std::string_view take_option(To& to, std::string_view verb, std::span<const JobOption<To>> rows, Args& args) {
  const auto equals = std::min(args[0].find('='), args[0].size());
  const std::string name = dashed(args[0].substr(2, equals - 2));
  const std::string who = text("job ", verb, ": --", name);
  const auto row = std::ranges::find(rows, name, &JobOption<To>::name);
  if (row == rows.end()) {
    std::vector<std::string_view> names;
    for (const JobOption<To>& one : rows) names.push_back(one.name);
    fail(Kind::usage, who, " is not an option", did_you_mean(name, names), "; weft help job lists them");
  }
  const bool joined = equals < args[0].size(), takes = !row->value.empty();
  if (takes && !joined && args.size() < 2) fail(Kind::usage, who, " needs a value: ", row->value);
  if (!takes && joined) fail(Kind::usage, who, " takes no value");
  row->set(to, who, !takes ? "" : joined ? args[0].substr(equals + 1) : args[1]);
  args = args.subspan(takes && !joined ? 2 : 1);
  return row->name;
}

template <class To>
Topic topic_of(const char* title, std::span<const JobOption<To>> rows) {
  Topic out{title, {}};
  for (const JobOption<To>& row : rows)
    out.options.push_back({text("--", row.name), std::string(row.value), std::string(row.help)});
  return out;
}

}  // namespace weft::cli
