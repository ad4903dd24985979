// Reads hostfiles line by line and filters word by word; who is wrong is named with its place.
#include "weft/launch/hostfile.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/launch/environment.h"

namespace weft::launch {
namespace {

constexpr int most_slots = 1 << 16;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  while (!(line = trim(line)).empty()) {
    const auto end = std::min(line.find_first_of(" \t"), line.size());
    out.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return out;
}

int count_of(const std::string& where, std::string_view word) {
  const int count = whole_number(where, word, 1);
  if (count > most_slots)
    fail(Kind::usage, where, ": ", count, " slots are more than the ", most_slots, " of a host");
  return count;
}

std::vector<int> first(int count) {
  std::vector<int> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

void must_be_a_name(const std::string& where, std::string_view name) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_' || c == ':';
  };
  if (name.empty() || name[0] == '-' || !std::all_of(name.begin(), name.end(), fits))
    fail(Kind::usage, where, ": '", name, "' is not the name of a host");
}

/// "name", "name:4", "[::1]", "[::1]:4"; the number is Hydra's slots.
std::pair<std::string, std::optional<int>> name_and_slots(const std::string& where, std::string_view word) {
  std::string_view name = word, rest;
  if (word.starts_with('[')) {
    const auto close = word.find(']');
    if (close == std::string_view::npos) fail(Kind::usage, where, ": '", word, "' has no ] for its [");
    name = word.substr(1, close - 1);
    rest = word.substr(close + 1);
  } else if (const auto colon = word.find(':'); colon != std::string_view::npos) {
    name = word.substr(0, colon);
    rest = word.substr(colon);
  }
  must_be_a_name(where, name);
  if (rest.empty()) return {std::string(name), std::nullopt};
  if (rest[0] != ':') fail(Kind::usage, where, ": '", word, "' goes on after its ]");
  return {std::string(name), count_of(where, rest.substr(1))};
}

Host host_of(const std::string& where, std::string_view line) {
  const auto words = words_of(line);
  auto [name, slots] = name_and_slots(where, words[0]);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word.starts_with("slots=") && !slots)
      slots = count_of(where, word.substr(6));
    else if (word.starts_with("max_slots="))
      count_of(where, word.substr(10));
    else
      fail(Kind::usage, where, ": '", word, "' is not understood; a line is HOST slots=N or HOST:N");
  }
  return {std::move(name), first(slots.value_or(1))};
}

/// Which slots of which hosts the words name; none for a host's all.
using Named = std::map<std::string, std::set<int>, std::less<>>;

void take_slots(const std::string& who, const Host& host, std::string_view list, std::set<int>& to) {
  for (const std::string_view word : split(list, ',')) {
    const int slot = whole_number(who, word, 0);
    if (!std::binary_search(host.slots.begin(), host.slots.end(), slot))
      fail(Kind::usage, who, ": host ", host.name, " has no slot ", slot, ", it has ", host.slots.size());
    to.insert(slot);
  }
}

Named named(const std::string& who, const std::vector<Host>& hosts, std::string_view words) {
  std::map<std::string_view, const Host*> by_name;
  for (const Host& host : hosts) by_name.emplace(host.name, &host);
  Named out;
  for (const std::string_view word : split(words, '@')) {
    std::string_view name = trim(word), list;
    const auto bracket = name.starts_with('[') ? name.find(']') : 0;
    const auto colon = name.find(':', bracket == std::string_view::npos ? 0 : bracket);
    const bool lists = colon != std::string_view::npos;
    if (lists) {
      list = name.substr(colon + 1);
      name = name.substr(0, colon);
    }
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
    const auto found = by_name.find(name);
    if (found == by_name.end()) fail(Kind::usage, who, ": '", name, "' is not a host of the hostfile");
    std::set<int>& slots = out[std::string(name)];
    if (lists)
      take_slots(who, *found->second, list, slots);
    else
      slots.insert(found->second->slots.begin(), found->second->slots.end());
  }
  return out;
}

std::vector<Host> kept(std::vector<Host> hosts, const std::string& who, const Named& those, bool keep) {
  for (Host& host : hosts) {
    const auto found = those.find(host.name);
    std::erase_if(host.slots,
                  [&](int slot) { return (found != those.end() && found->second.contains(slot)) != keep; });
  }
  std::erase_if(hosts, [](const Host& host) { return host.slots.empty(); });
  if (hosts.empty()) fail(Kind::usage, who, ": no slot of any host is left");
  return hosts;
}

}  // namespace

std::vector<Host> read_hosts(std::string_view file_name, std::string_view content) {
  std::vector<Host> hosts;
  std::map<std::string, int> line_of;
  int number = 0;
  for (std::string_view line : split(content, '\n')) {
    const std::string where = text(file_name, ":", ++number);
    if (line.find('\0') != std::string_view::npos)
      fail(Kind::usage, where, ": a zero byte; is this a text file?");
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    Host host = host_of(where, line);
    const auto [at, fresh] = line_of.emplace(host.name, number);
    if (!fresh) fail(Kind::usage, where, ": host ", host.name, " stands in line ", at->second, " already");
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) fail(Kind::usage, file_name, ": names no host");
  return hosts;
}

std::vector<Host> included(std::vector<Host> hosts, std::string_view words) {
  const Named those = named("--include", hosts, words);
  return kept(std::move(hosts), "--include", those, true);
}

std::vector<Host> excluded(std::vector<Host> hosts, std::string_view words) {
  const Named those = named("--exclude", hosts, words);
  return kept(std::move(hosts), "--exclude", those, false);
}

std::string hostfile_of(const std::vector<Host>& hosts) {
  std::string out;
  for (const Host& host : hosts) out += text(host.name, " slots=", host.slots.size(), "\n");
  return out;
}

}  // namespace weft::launch
