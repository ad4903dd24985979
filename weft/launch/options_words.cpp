// The small languages inside options: node counts, routings, endpoints, pairs of names and values.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/launch/options.h"

namespace weft::launch {
namespace {

double seconds_of(std::string_view who, std::string_view word) {
  double value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, wrong] = std::from_chars(word.data(), end, value);
  if (wrong != std::errc{} || stop != end || !std::isfinite(value) || value < 0)
    fail(Kind::usage, who, ": '", word, "' is not a number of seconds");
  return value;
}

Streams streams_of(std::string_view who, std::string_view word) {
  const int value = whole_number(who, word, 0);
  if (value > 3)
    fail(Kind::usage, who, ": ", value, " is not 0 (neither), 1 (stdout), 2 (stderr) or 3 (both)");
  return static_cast<Streams>(value);
}

int port_of(std::string_view who, std::string_view word) {
  const int port = whole_number(who, word, 0);
  if (port > 65535) fail(Kind::usage, who, ": ", port, " is not a port; the last is 65535");
  return port;
}

}  // namespace

Streams Routing::of(int local_rank) const {
  const auto found = by_rank.find(local_rank);
  return found == by_rank.end() ? others : found->second;
}

Nodes read_nodes(std::string_view who, std::string_view word) {
  const auto parts = split(word, ':');
  if (parts.size() > 2) fail(Kind::usage, who, ": '", word, "' is neither N nor MIN:MAX");
  Nodes nodes;
  nodes.least = whole_number(who, parts[0], 1);
  nodes.most = parts.size() == 2 ? whole_number(who, parts[1], 1) : nodes.least;
  if (nodes.most < nodes.least)
    fail(Kind::usage, who, ": at least ", nodes.least, " nodes are more than at most ", nodes.most);
  return nodes;
}

Routing read_routing(std::string_view who, std::string_view words) {
  Routing out;
  if (words.find(':') == std::string_view::npos) {
    out.others = streams_of(who, words);
    return out;
  }
  for (const std::string_view pair : split(words, ',')) {
    const auto colon = pair.find(':');
    if (colon == std::string_view::npos) fail(Kind::usage, who, ": '", pair, "' is not RANK:STREAMS");
    const int rank = whole_number(who, trim(pair.substr(0, colon)), 0);
    if (!out.by_rank.emplace(rank, streams_of(who, trim(pair.substr(colon + 1)))).second)
      fail(Kind::usage, who, ": rank ", rank, " stands there twice");
  }
  return out;
}

Endpoint read_endpoint(std::string_view who, std::string_view word, int otherwise) {
  Endpoint out{.port = otherwise};
  std::string_view host = word, port;
  if (word.starts_with('[')) {
    const auto close = word.find(']');
    if (close == std::string_view::npos) fail(Kind::usage, who, ": '", word, "' has no ] for its [");
    host = word.substr(1, close - 1);
    port = word.substr(close + 1);
    if (!port.empty() && port[0] != ':') fail(Kind::usage, who, ": '", word, "' goes on after its ]");
  } else if (const auto colon = word.find(':'); colon != std::string_view::npos && word.rfind(':') == colon) {
    host = word.substr(0, colon);
    port = word.substr(colon);
  }
  if (!port.empty()) out.port = port_of(who, port.substr(1));
  if (!host.empty()) out.host = host;
  return out;
}

std::string read_host(std::string_view who, std::string_view word) {
  const Endpoint out = read_endpoint(who, word, -1);
  if (out.port >= 0) fail(Kind::usage, who, ": '", word, "' is a host and a port; here a host stands alone");
  return out.host;
}

std::vector<Endpoint> read_places(std::string_view who, std::string_view words, int otherwise) {
  std::vector<Endpoint> out;
  for (const std::string_view word : split(words, ','))
    out.push_back(read_endpoint(who, trim(word), otherwise));
  for (auto at = out.begin(); at != out.end(); ++at)
    if (std::find(out.begin(), at, *at) != at)
      fail(Kind::usage, who, ": ", at->host, " port ", at->port, " is named twice");
  if (out.size() == 2)
    fail(Kind::usage, who,
         ": of two places neither can outvote the other where one is lost; name one, or three");
  return out;
}

std::vector<std::string> read_patience(std::string_view who, std::string_view words, Patience& to) {
  std::vector<std::string> unused;
  for (const std::string_view pair : split(words, ',')) {
    const auto equals = pair.find('=');
    const std::string_view key = trim(pair.substr(0, equals));
    const std::string_view value = equals == std::string_view::npos ? "" : trim(pair.substr(equals + 1));
    if (key.empty() || value.empty()) fail(Kind::usage, who, ": '", pair, "' is not NAME=VALUE");
    const std::string where = text(who, ": ", key);
    if (key == "join_timeout" || key == "timeout")
      to.join = seconds_of(where, value);
    else if (key == "last_call_timeout")
      to.last_call = seconds_of(where, value);
    else if (key == "keep_alive_interval")
      to.beat = std::max(0.01, seconds_of(where, value));
    else if (key == "keep_alive_max_attempt")
      to.missed_beats = whole_number(where, value, 1);
    else if (key == "close_timeout" || key == "heartbeat_timeout" || key == "read_timeout" ||
             key == "is_host" || key == "store_type")
      unused.emplace_back(key);
    else
      fail(Kind::usage, who, ": '", key, "' is not known; there are join_timeout, last_call_timeout, ",
           "keep_alive_interval and keep_alive_max_attempt");
  }
  return unused;
}

}  // namespace weft::launch
