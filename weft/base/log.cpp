// Events written through spdlog's sinks, which keep lines whole and files open; the words of a line are ours.
#include "weft/base/log.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"

namespace weft {
namespace {

// The fewest digits that give the same double back.
std::string shortest(double x) {
  std::array<char, 32> out{};
  return {out.data(), std::to_chars(out.data(), out.data() + out.size(), x).ptr};
}

// Bytes that are not UTF-8, a file's name may hold them, become U+FFFD.
std::string in_quotes(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string thousandths(double seconds) {
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%.3f", seconds);
  return out.data();
}

struct ForPeople {
  std::string operator()(bool v) const { return v ? "yes" : "no"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return shortest(v); }
  std::string operator()(const std::string& v) const { return v; }
};

struct ForPrograms {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return std::isfinite(v) ? shortest(v) : "null"; }
  std::string operator()(const std::string& v) const { return in_quotes(v); }
};

std::string stamp(double seconds) {
  const auto whole = static_cast<std::time_t>(std::floor(seconds));
  std::tm parts{};
  gmtime_r(&whole, &parts);
  std::array<char, 64> day{};
  std::strftime(day.data(), day.size(), "%Y-%m-%d %H:%M:%S", &parts);
  // "0.250" without its zero; rounding up to a whole second would want the next one, so cut.
  const double part = std::floor((seconds - static_cast<double>(whole)) * 1000) / 1000;
  return day.data() + thousandths(part).substr(1);
}

std::string sentence_of(const Event& event) {
  std::string out;
  if (event.level != Level::info) out += std::string(word(event.level)) + ": ";
  out += event.sentence;
  const char* before = " (";
  for (const Fact& fact : event.facts) {
    out += before + fact.name + "=" + std::visit(ForPeople{}, fact.value);
    before = ", ";
  }
  return event.facts.empty() ? out : out + ")";
}

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::unique_ptr<spdlog::formatter> bare_lines() {
  return std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::utc);
}

std::shared_ptr<spdlog::sinks::sink> open_json(const std::string& path) {
  try {
    return std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  } catch (const spdlog::spdlog_ex& e) {
    fail(Kind::data, "log: ", path, " cannot be written: ", e.what());
  }
}

void put(const std::shared_ptr<spdlog::sinks::sink>& sink, const std::string& line) {
  if (sink) sink->log(spdlog::details::log_msg({}, spdlog::level::info, line));
}

}  // namespace

struct Log::Places {
  Level least;
  bool stamped;
  std::function<double()> now;
  std::function<std::string(std::string_view)> wording;
  std::shared_ptr<spdlog::sinks::sink> console, json;
};

std::string_view word(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warning:
      return "warning";
    case Level::error:
      return "error";
  }
  return "unknown";
}

std::string line_of(const Event& event) {
  return stamp(event.seconds) + " [" + std::to_string(event.rank) + "] " + sentence_of(event);
}

std::string json_of(const Event& event) {
  std::string out = "{\"time\":" + thousandths(event.seconds) + ",\"rank\":" + std::to_string(event.rank) +
                    ",\"level\":\"" + std::string(word(event.level)) +
                    "\",\"event\":" + in_quotes(event.sentence);
  for (const Fact& fact : event.facts)
    out += "," + in_quotes(fact.name) + ":" + std::visit(ForPrograms{}, fact.value);
  return out + "}";
}

Log::Log() = default;

Log::Log(int rank, const Options& options) : rank_(rank) {
  auto places = std::make_shared<Places>();
  places->least = options.least;
  places->stamped = options.stamped;
  places->now = options.now ? options.now : system_seconds;
  places->wording = options.wording;
  if (options.console) places->console = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  if (!options.json_path.empty()) places->json = open_json(options.json_path);
  for (const auto& sink : {places->console, places->json}) {
    if (sink) sink->set_formatter(bare_lines());
  }
  places_ = std::move(places);
}

bool Log::wants(Level level) const { return places_ && level >= places_->least; }

void Log::flush() const {
  if (!places_) return;
  for (const auto& sink : {places_->console, places_->json}) {
    if (sink) sink->flush();
  }
}

void Log::debug(std::string_view sentence, std::vector<Fact> facts) const {
  say(Level::debug, sentence, std::move(facts));
}
void Log::info(std::string_view sentence, std::vector<Fact> facts) const {
  say(Level::info, sentence, std::move(facts));
}
void Log::warning(std::string_view sentence, std::vector<Fact> facts) const {
  say(Level::warning, sentence, std::move(facts));
}
void Log::error(std::string_view sentence, std::vector<Fact> facts) const {
  say(Level::error, sentence, std::move(facts));
}

void Log::say(Level level, std::string_view sentence, std::vector<Fact> facts) const {
  if (!wants(level)) return;
  const auto& wording = places_->wording;
  const Event event{level, rank_, places_->now(), wording ? wording(sentence) : std::string(sentence),
                    std::move(facts)};
  put(places_->console, places_->stamped ? line_of(event) : sentence_of(event));
  put(places_->json, json_of(event));
  // What is worth a warning must be there after a crash.
  if (level >= Level::warning) flush();
}

}  // namespace weft
