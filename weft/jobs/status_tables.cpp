// Events and resources of a job, as tables.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/jobs/look.h"
#include "weft/jobs/status.h"

namespace weft::jobs {
namespace {

std::string time_of(const Tree& event) {
  for (const char* key : {"lastTimestamp", "eventTime", "firstTimestamp", "metadata/creationTimestamp"})
    if (std::string said = word_at(event, key); !said.empty() && said != "null") return said;
  return "";
}

/// A quantity of Kubernetes': "500m", "16Gi", "8", "1e3".
double quantity(const std::string& said) {
  struct Unit {
    std::string_view name;
    double of;
  };
  constexpr double k = 1024;
  constexpr Unit units[] = {{"m", 1e-3}, {"", 1},   {"k", 1e3},    {"M", 1e6},        {"G", 1e9},
                            {"T", 1e12}, {"Ki", k}, {"Mi", k * k}, {"Gi", k * k * k}, {"Ti", k * k * k * k}};
  double value = 0;
  const auto [stop, wrong] = std::from_chars(said.data(), said.data() + said.size(), value);
  if (wrong != std::errc{}) return 0;
  const std::string_view rest(stop, std::size_t(said.data() + said.size() - stop));
  const auto unit = std::ranges::find(units, rest, &Unit::name);
  return unit == std::end(units) ? 0 : value * unit->of;
}

std::string shown(const std::string& resource, double value) {
  value = value > 0 ? std::min(value, 9e18) : 0;  // what is no number is none
  if (resource == "memory" || resource.ends_with("storage")) return human_bytes(std::int64_t(value));
  return value == std::floor(value) ? text(std::int64_t(value)) : text(value);
}

using Sum = std::map<std::string, double>;

std::string line_of(const Sum& sum) {
  std::vector<std::string> parts;
  for (const auto& [resource, value] : sum) parts.push_back(text(resource, " ", shown(resource, value)));
  return parts.empty() ? "nothing" : join(parts, ", ");
}

}  // namespace

std::string events_told(const Tree& list, const std::string& job) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Tree* event : items_at(list, "items")) {
    const std::string who = word_at(*event, "involvedObject/name");
    if (who != job && !who.starts_with(job + "-")) continue;
    const std::string time = time_of(*event);
    lines.emplace_back(time, text(time, "  ", word_at(*event, "type"), "  ", word_at(*event, "reason"), "  ",
                                  who, "  ", word_at(*event, "message"), "\n"));
  }
  std::ranges::stable_sort(lines, {}, &std::pair<std::string, std::string>::first);
  std::string out;
  for (const auto& line : lines) out += line.second;
  return out;
}

std::string resources_told(const Tree& list) {
  std::string out;
  std::map<std::string, Sum> all;
  for (const Tree* object : items_at(list, "items")) {
    if (word_at(*object, "kind") != "Pod") continue;
    std::map<std::string, Sum> own{{"limits", {}}, {"requests", {}}};
    for (const Tree* container : items_at(*object, "spec/containers"))
      for (auto& [kind, sum] : own)
        if (const Tree* map = at(*container, "resources/" + kind); map != nullptr && map->is == Tree::Is::map)
          for (const auto& [resource, value] : map->pairs) sum[resource] += quantity(value.text);
    for (const auto& [kind, sum] : own)
      for (const auto& [resource, value] : sum) all[kind][resource] += value;
    out += text("  ", word_at(*object, "metadata/name"), "  asks for ", line_of(own["requests"]),
                "; may have ", line_of(own["limits"]), "\n");
  }
  return text(out, "  all  asks for ", line_of(all["requests"]), "; may have ", line_of(all["limits"]), "\n");
}

}  // namespace weft::jobs
