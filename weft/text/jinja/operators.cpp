#include "weft/text/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "weft/text/jinja/print.h"

namespace weft::jinja {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Value text_sum(Work& work, const Text& a, const Text& b) {
  if (!a.markup && !b.markup) return work.text(a.bytes + b.bytes);
  const auto safe = [](const Text& text) { return text.markup ? text.bytes : escaped(text.bytes); };
  return work.text(safe(a) + safe(b), true);
}

namespace {

[[noreturn]] void unfit(Work& work, std::string_view sign, const Value& a, const Value& b) {
  for (const Value* one : {&a, &b})
    if (one->undefined()) work.refuse_undefined(*one);
  work.refuse("'", sign, "' does not go between ", kind(a), " and ", kind(b));
}

Value repeated(Work& work, const Value& what, std::int64_t times) {
  times = std::max<std::int64_t>(times, 0);
  if (const Text* text = what.text()) {
    work.spend(times, text->bytes.size());
    std::string out;
    for (std::int64_t k = 0; k < times && !text->bytes.empty(); ++k) out += text->bytes;
    return work.text(std::move(out), text->markup);
  }
  const Sequence& list = *what.sequence();
  work.spend(times, list.items.size() * sizeof(Value));
  Values out;
  for (std::int64_t k = 0; k < times && !list.items.empty(); ++k)
    out.insert(out.end(), list.items.begin(), list.items.end());
  return work.sequence(list.form == Form::list ? Form::list : Form::tuple, std::move(out));
}

bool repeats(const Value& value) {
  if (value.text() != nullptr) return true;
  const Sequence* list = value.sequence();
  return list != nullptr &&
         (list->form == Form::list || list->form == Form::tuple || list->form == Form::group);
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

double floor_rest(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

Value whole_power(Work& work, std::int64_t base, std::int64_t power) {
  if (power < 0) {
    if (base == 0) work.refuse("0 has no negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(power));
  }
  std::int64_t out = 1;
  if (base == 0 || base == 1) return power == 0 ? std::int64_t{1} : base;
  if (base == -1) return power % 2 == 0 ? std::int64_t{1} : std::int64_t{-1};
  for (std::int64_t k = 0; k < power; ++k)
    if (__builtin_mul_overflow(out, base, &out)) work.refuse("a whole number outgrows 64 bits");
  return out;
}

Value of_wholes(Work& work, std::string_view sign, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  bool over = false;
  if ((sign == "/" || sign == "//" || sign == "%") && b == 0) work.refuse("division by zero");
  if (sign == "/") return static_cast<double>(a) / static_cast<double>(b);
  if (sign == "**") return whole_power(work, a, b);
  if (sign == "+") {
    over = __builtin_add_overflow(a, b, &out);
  } else if (sign == "-") {
    over = __builtin_sub_overflow(a, b, &out);
  } else if (sign == "*") {
    over = __builtin_mul_overflow(a, b, &out);
  } else if (b == -1) {  // the smallest number has no opposite
    over = sign == "//" && __builtin_sub_overflow(std::int64_t{0}, a, &out);
  } else {
    out = sign == "//" ? floor_quotient(a, b) : a - floor_quotient(a, b) * b;
  }
  if (over) work.refuse("a whole number outgrows 64 bits");
  return out;
}

Value of_numbers(Work& work, std::string_view sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (sign == "**") {
    if (a < 0 && b != std::floor(b)) work.refuse("a negative number has no such power");
    if (a == 0 && b < 0) work.refuse("0 has no negative power");
    return std::pow(a, b);
  }
  if (b == 0) work.refuse("division by zero");
  if (sign == "/") return a / b;
  return sign == "%" ? floor_rest(a, b) : std::floor(a / b);
}

Value list_sum(Work& work, const Value& a, const Value& b) {
  const Sequence &left = *a.sequence(), &right = *b.sequence();
  const auto form = [](const Sequence& list) { return list.form == Form::list ? Form::list : Form::tuple; };
  if (form(left) != form(right)) unfit(work, "+", a, b);
  work.spend(static_cast<std::int64_t>(left.items.size() + right.items.size()));
  Values out = left.items;
  out.insert(out.end(), right.items.begin(), right.items.end());
  return work.sequence(form(left), std::move(out));
}

}  // namespace

Value binary(Work& work, std::string_view sign, const Value& a, const Value& b) {
  if (is_whole(a) && is_whole(b)) return of_wholes(work, sign, as_whole(a), as_whole(b));
  if (is_number(a) && is_number(b)) return of_numbers(work, sign, as_double(a), as_double(b));
  if (sign == "+" && a.text() != nullptr && b.text() != nullptr) return text_sum(work, *a.text(), *b.text());
  if (sign == "+" && repeats(a) && repeats(b) && a.sequence() != nullptr && b.sequence() != nullptr)
    return list_sum(work, a, b);
  if (sign == "*" && repeats(a) && is_whole(b)) return repeated(work, a, as_whole(b));
  if (sign == "*" && is_whole(a) && repeats(b)) return repeated(work, b, as_whole(a));
  if (sign == "%" && a.text() != nullptr) {
    const Sequence* list = b.sequence();
    const bool many = list != nullptr && (list->form == Form::tuple || list->form == Form::group);
    return percent(work, a.text()->bytes, {.plain = many ? list->items : Values{b}, .named = {}});
  }
  unfit(work, sign, a, b);
}

bool contains(Work& work, const Value& in, const Value& what) {
  if (in.undefined()) return false;
  if (const Text* text = in.text()) {
    if (what.text() == nullptr) work.refuse("a text holds texts, and no ", kind(what) + 2);
    work.spend(static_cast<std::int64_t>(text->bytes.size() / 16));
    return text->bytes.find(what.text()->bytes) != std::string::npos;
  }
  if (const Dict* dict = in.dict()) return work.find(*dict, what) != nullptr;
  if (in.sequence() == nullptr) work.refuse(kind(in), " holds nothing that 'in' could find");
  return std::ranges::any_of(work.walked(in), [&](const Value& one) { return work.equal(one, what); });
}

bool compares(Work& work, std::string_view sign, const Value& a, const Value& b) {
  if (sign == "==") return work.equal(a, b);
  if (sign == "!=") return !work.equal(a, b);
  if (sign == "in") return contains(work, b, a);
  if (sign == "not in") return !contains(work, b, a);
  const bool number = is_number(a) && is_number(b);
  if (number && (std::isnan(as_double(a)) || std::isnan(as_double(b)))) return false;
  if (sign == "<") return work.less(a, b);
  if (sign == ">") return work.less(b, a);
  return sign == "<=" ? !work.less(b, a) : !work.less(a, b);
}

Value negative(Work& work, const Value& value) {
  if (value.undefined()) work.refuse_undefined(value);
  if (!is_number(value)) work.refuse("'-' does not go before ", kind(value));
  if (is_whole(value)) return of_wholes(work, "-", 0, as_whole(value));
  return -as_double(value);
}

}  // namespace weft::jinja
