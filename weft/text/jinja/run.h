// Runs a parsed template: statements in jinja_run.cpp, expressions in jinja_evaluate.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/jinja/tree.h"
#include "weft/text/jinja/work.h"
#include "weft/text/split.h"

namespace weft::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

/// Names that are set here, before those of the scope around it.
struct Scope {
  Variables names = {};
  std::shared_ptr<Scope> around = {};
  void set(const std::string& name, Value value);
};

/// Of one writing of one template.
class Run {
 public:
  Run(Work& work, Variables context);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void whole(const Template& of) { (void)statements(of.body); }
  [[nodiscard]] std::string& text() { return sinks_[0]; }
  [[nodiscard]] std::vector<ByteRange>& answers() { return answers_; }

  /// A macro's text. `around` is the scope it was written in.
  Value call_macro(const Statement& macro, const std::shared_ptr<Scope>& around, Arguments given);

 private:
  enum class Flow { on, leave, next };
  class Deeper {
   public:
    explicit Deeper(Run& run);
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    ~Deeper() { --depth_; }

   private:
    int& depth_;
  };

  Flow statements(const Block& block);
  Flow statement(const Statement& one);
  Flow choice(const Statement& one);
  Flow loop(const Statement& one);
  Values items_of(const Statement& loop);
  void assign(const Expression& target, const Value& value);
  void filter_block(const Statement& one);
  void call_block(const Statement& one);
  Flow with_block(const Statement& one);
  void generation(const Statement& one);
  Value macro_of(const Statement& one);
  void give(const Statement& macro, Arguments& given);
  void write(std::string_view text);
  std::string captured(const Block& block);

  Value evaluate(const Expression& e);
  Value evaluated(const Expression& e);
  Value name(const std::string& name);
  Value part(const Expression& e);
  Value list(const Expression& e);
  Value dict(const Expression& e);
  Value call(const Expression& e);
  Value filter(const Expression& e);
  Value test(const Expression& e);
  Value compare(const Expression& e);
  Value join(const Expression& e);
  Value pick(const Expression& e);
  Arguments arguments(const GivenArguments& given);

  Work& work_;
  std::shared_ptr<Scope> scope_;
  std::vector<std::string> sinks_;
  std::vector<ByteRange> answers_;
  Values bodies_;                             // what filter blocks around this place wrote
  std::vector<std::shared_ptr<Scope>> kept_;  // scopes that macros came from: these do not own them
  int depth_ = 0;
};

}  // namespace weft::jinja
