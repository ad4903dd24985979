// What a run says about itself: a line per event with its rank, for people, and the same as JSON beside it,
// for programs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft {

enum class Level { debug, info, warning, error };

/// "debug", "info", "warning", "error".
std::string_view word(Level level);

/// A named fact of an event: {"loss", 3.2}. Numbers are printed with enough digits to give the same bits
/// back.
struct Fact {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string> value;

  Fact(std::string n, bool v) : name(std::move(n)), value(v) {}
  Fact(std::string n, int v) : name(std::move(n)), value(std::int64_t{v}) {}
  Fact(std::string n, std::int64_t v) : name(std::move(n)), value(v) {}
  Fact(std::string n, double v) : name(std::move(n)), value(v) {}
  Fact(std::string n, std::string v) : name(std::move(n)), value(std::move(v)) {}
  Fact(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
};

struct Event {
  Level level = Level::info;
  int rank = 0;
  double seconds = 0;  // since 1970, UTC
  std::string sentence;
  std::vector<Fact> facts;
};

/// "2026-01-31 13:05:07.250 [3] warning: loss is not finite (step=7, loss=nan)", without the line's end.
std::string line_of(const Event& event);
/// {"time":…,"rank":3,"level":"warning","event":"loss is not finite","step":7,"loss":null}, without the
/// line's end. What is not a number is null, as JSON has no word for it.
std::string json_of(const Event& event);

/// A value handed down, never a global: copies write to the same places. All its words may be called from
/// many threads; lines never mix.
class Log {
 public:
  struct Options {
    Level least = Level::info;
    bool console = true;          // lines to standard error
    std::string json_path;        // a line of JSON an event, appended; empty for none
    bool stamped = true;          // time and rank before the sentence
    std::function<double()> now;  // seconds since 1970; the system's clock unless a test gives another
    std::function<std::string(std::string_view)> wording;  // of every sentence; unset: as it was said
  };

  /// Says nothing.
  Log();
  Log(int rank, const Options& options);

  void debug(std::string_view sentence, std::vector<Fact> facts = {}) const;
  void info(std::string_view sentence, std::vector<Fact> facts = {}) const;
  void warning(std::string_view sentence, std::vector<Fact> facts = {}) const;
  void error(std::string_view sentence, std::vector<Fact> facts = {}) const;

  [[nodiscard]] bool wants(Level level) const;
  /// Returns when all lines are with the operating system.
  void flush() const;

 private:
  struct Places;
  void say(Level level, std::string_view sentence, std::vector<Fact> facts) const;

  int rank_ = 0;
  std::shared_ptr<const Places> places_;
};

}  // namespace weft
