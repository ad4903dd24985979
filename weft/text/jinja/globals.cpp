// Functions that every template has.
#include <array>
#include <chrono>
#include <ctime>

#include "weft/text/jinja/print.h"

namespace weft::jinja {

namespace {

Value raise(const Call& call) {
  call.work.refuse("the template refuses this conversation: ", printed(call.work, *call.with[0]));
}

// What a clock on the wall shows here.
std::tm clock_of(const Work& work) {
  std::tm out{};
  if (work.now()) {
    const std::time_t now = *work.now();
    gmtime_r(&now, &out);
  } else {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    localtime_r(&now, &out);
  }
  return out;
}

Value time_text(const Call& call) {
  const std::string format = call.with.text(0, "");
  constexpr std::string_view letters = "aAbBcdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYC%-";
  for (std::size_t at = format.find('%'); at != std::string::npos; at = format.find('%', at + 2)) {
    if (at + 1 >= format.size() || letters.find(format[at + 1]) == std::string_view::npos)
      call.work.refuse("strftime_now: weft knows no '", format.substr(at, 2), "'");
  }
  if (format.empty()) return call.work.text("");
  const std::tm now = clock_of(call.work);
  std::string out(format.size() * 16 + 256, '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &now));
  return call.work.text(std::move(out));
}

Value range(const Call& call) {
  constexpr std::int64_t most = 100000;  // as Jinja's sandbox has it
  const bool both = call.with.has(1);
  const std::int64_t from = both ? call.with.whole(0, 0) : 0, to = call.with.whole(both ? 1 : 0, 0);
  const std::int64_t step = call.with.whole(2, 1);
  if (step == 0) call.work.refuse("range: a step of 0");
  const auto far = [](double value) { return value > 1e15 || value < -1e15; };
  if (far(static_cast<double>(from)) || far(static_cast<double>(to)) || far(static_cast<double>(step)))
    call.work.refuse("range: bounds beyond 1e15");
  Values out;
  for (std::int64_t k = from; step > 0 ? k < to : k > to; k += step) {
    if (std::ssize(out) == most) call.work.refuse("range: more than ", most, " numbers");
    call.work.spend(1);
    out.push_back(k);
  }
  return call.work.sequence(Form::range, std::move(out));
}

// Of a dict, or pairs, and names.
std::vector<Pair> pairs_of(const Call& call) {
  std::vector<Pair> out;
  const Arguments& given = call.with.rest();
  if (given.plain.size() > 1) call.work.refuse("dict and namespace take one argument without a name");
  if (!given.plain.empty()) {
    const Value& of = given.plain[0];
    if (of.undefined()) call.work.refuse_undefined(of);
    if (of.dict() != nullptr) {
      call.work.spend(std::ssize(of.dict()->pairs));
      out = of.dict()->pairs;
    } else {
      for (const Value& one : call.work.walked(of)) {
        const Values two = call.work.walked(one);
        if (two.size() != 2)
          call.work.refuse("dict and namespace take pairs, and no ", kind(one) + 2, " of ", two.size());
        out.emplace_back(two[0], two[1]);
      }
    }
  }
  for (const auto& [name, value] : given.named) out.emplace_back(call.work.text(name), value);
  return out;
}

Value space(const Call& call) {
  const auto out = std::make_shared<const Space>(std::vector<std::pair<std::string, Value>>{});
  call.work.keep(out);
  for (const auto& [name, value] : pairs_of(call)) {
    if (name.text() == nullptr) call.work.refuse("namespace: a name is ", kind(name), ", expected a text");
    out->set(call.work, name.text()->bytes, value);
  }
  return out;
}

class Cycler : public Object {
 public:
  explicit Cycler(Values items) : items_(std::move(items)) {}
  [[nodiscard]] const char* kind() const override { return "a cycler"; }
  [[nodiscard]] int depth() const override {
    int most = 0;
    for (const Value& one : items_) most = std::max(most, jinja::depth(one));
    return most + 1;
  }
  [[nodiscard]] std::optional<Value> part(Work&, std::string_view name) const override;
  Value next() const { return items_[at_++ % items_.size()]; }
  void reset() const { at_ = 0; }

 private:
  Values items_;
  mutable std::size_t at_ = 0;
};

constexpr Known next_of{"next", "",
                        [](const Call& c) { return dynamic_cast<const Cycler&>(*c.self.object()).next(); }};
constexpr Known reset_of{"reset", "", [](const Call& c) {
                           dynamic_cast<const Cycler&>(*c.self.object()).reset();
                           return Value(None{});
                         }};

std::optional<Value> Cycler::part(Work&, std::string_view name) const {
  if (name == "current") return items_[at_ % items_.size()];
  if (name != "next" && name != "reset") return {};
  // Not owned by the method: whoever runs the template keeps every cycler to the end.
  const std::shared_ptr<const Object> self(std::shared_ptr<const Object>(), this);
  return std::make_shared<const Function>(name == "next" ? next_of : reset_of, self);
}

Value cycler(const Call& call) {
  if (call.with.rest().plain.empty() || !call.with.rest().named.empty())
    call.work.refuse("cycler takes items");
  const auto out = std::make_shared<const Cycler>(call.with.rest().plain);
  call.work.keep(out);
  return out;
}

// Nothing the first time, then what it was made of.
class Joiner : public Object {
 public:
  explicit Joiner(std::string between) : between_(std::move(between)) {}
  [[nodiscard]] const char* kind() const override { return "a joiner"; }
  [[nodiscard]] bool callable() const override { return true; }
  Value call(Work& work, Arguments&&) const override {
    return work.text(std::exchange(used_, true) ? between_ : "");
  }

 private:
  std::string between_;
  mutable bool used_ = false;
};

constexpr std::array globals{
    Known{"raise_exception", "message!", raise},
    Known{"strftime_now", "format!", time_text},
    Known{"range", "start! stop step", range},
    Known{"dict", "*", [](const Call& c) { return c.work.dict(pairs_of(c)); }},
    Known{"namespace", "*", space},
    Known{"cycler", "*", cycler},
    Known{"joiner", "sep",
          [](const Call& c) -> Value { return std::make_shared<const Joiner>(c.with.text(0, ", ")); }},
    Known{"lipsum", "*", [](const Call& c) -> Value { c.work.refuse("weft has no lipsum"); }}};

}  // namespace

const Known* global_named(std::string_view name) { return known(globals, name); }

}  // namespace weft::jinja
