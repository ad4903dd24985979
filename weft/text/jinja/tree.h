// A Jinja template as its parser leaves it: statements, and the expressions in them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/text/jinja/value.h"

namespace weft::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct GivenArguments {
  std::vector<ExpressionPtr> plain;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr list, dict;  // *list, **dict; or null
};

struct Expression {
  enum class Kind {
    constant,
    name,
    attribute,  // parts[0].word
    item,       // parts[0][parts[1]]
    slice,      // parts[0][parts[1]:parts[2]:parts[3]], each but the first or null
    call,       // parts[0](given)
    filter,     // parts[0] | word(given)
    test,       // parts[0] is word(given)
    list,
    tuple,
    dict,    // a key, its value, a key, …
    pick,    // parts[0] if parts[1] else parts[2] (or null)
    either,  // or
    both,    // and
    negate,  // not
    minus,
    plus,
    compare,  // parts[0] words[0] parts[1] words[1] …
    join,     // ~
    binary,   // parts[0] word parts[1]
    body      // what a filter block wrote
  };
  Kind kind = Kind::constant;
  int line = 1;
  int depth = 1;
  std::string word = {};
  Value constant = {};
  std::vector<ExpressionPtr> parts = {};
  GivenArguments given = {};
  std::vector<std::string> words = {};
};

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // or null
};

struct Statement;
using Block = std::vector<Statement>;
struct Branch {
  ExpressionPtr test;
  Block body;
};

struct Statement {
  enum class Kind {
    data,
    output,
    choice,  // if, elif, else
    loop,
    assign,
    capture,  // {% set target %} body {% endset %}
    macro,
    call,    // value is the call
    filter,  // value ends in Expression::Kind::body
    with,
    generation,
    leave,  // break
    next    // continue
  };
  Kind kind = Kind::data;
  int line = 1;
  std::string word = {};  // data; a macro's name
  ExpressionPtr target = {}, value = {}, test = {};
  std::vector<Branch> branches = {};
  Block body = {}, otherwise = {};
  std::vector<Parameter> parameters = {};                           // of a macro or a call; names of a with
  bool asks_caller = false, asks_more = false, asks_named = false;  // a macro: caller, varargs, kwargs
};

struct Template {
  std::string name;
  Block body;
};

}  // namespace weft::jinja
