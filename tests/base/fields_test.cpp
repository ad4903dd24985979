#include "weft/base/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cmath>

#include "weft/base/error.h"

using namespace weft;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

enum class Yarn : std::uint8_t { wool, silk };
constexpr std::array<std::string_view, 2> words(Yarn) { return {"wool", "silk"}; }

struct Inner {
  double rate = 0.5;
  std::optional<std::int64_t> limit;
};
struct Outer {
  int steps = 3;
  bool loud = false;
  std::string path = "out";
  Yarn yarn = Yarn::wool;
  std::vector<Yarn> mixed;
  Inner inner;
};
template <class Visitor>
void describe(Visitor& v, Inner& c) {
  v("rate", c.rate, "how fast");
  v("limit", c.limit, "how far");
}
template <class Visitor>
void describe(Visitor& v, Outer& c) {
  v("steps", c.steps, "how many");
  v("loud", c.loud, "say more");
  v("path", c.path, "where");
  v("yarn", c.yarn, "of what");
  v("mixed", c.mixed, "with what");
  v.group("inner", c.inner);
}

void read(Fields& fields, const std::string& path, std::vector<std::string> from) {
  fields.at(path).read(from, Origin::command_line);
}

}  // namespace

TEST(Fields, lists_every_field_once_in_the_order_of_describe) {
  Outer c;
  Fields fields(c);
  std::vector<std::string> paths;
  for (const auto& f : fields.all()) paths.push_back(f->path());
  EXPECT_THAT(paths, ElementsAre("steps", "loud", "path", "yarn", "mixed", "inner.rate", "inner.limit"));
}

TEST(Fields, know_who_set_them) {
  Outer c;
  Fields fields(c);
  read(fields, "steps", {"7"});
  EXPECT_EQ(c.steps, 7);
  EXPECT_EQ(fields.at("steps").origin(), Origin::command_line);
  EXPECT_EQ(fields.at("path").origin(), Origin::built_in);
  EXPECT_EQ(name(Origin::command_line), "command line");
}

TEST(Fields, read_lists_choices_and_values_that_may_be_unset) {
  Outer c;
  Fields fields(c);
  read(fields, "mixed", {"silk", "wool"});
  read(fields, "inner.limit", {"12"});
  EXPECT_THAT(c.mixed, ElementsAre(Yarn::silk, Yarn::wool));
  EXPECT_EQ(c.inner.limit, 12);
  read(fields, "inner.limit", {});
  EXPECT_EQ(c.inner.limit, std::nullopt);
}

TEST(Fields, say_what_a_value_should_have_been) {
  Outer c;
  Fields fields(c);
  const auto refused = [&](const char* path, std::vector<std::string> from, const char* sentence) {
    EXPECT_THAT([&] { read(fields, path, from); }, ThrowsMessage<Error>(sentence));
  };
  refused("steps", {"seven"}, "'seven' is not a whole number");
  refused("steps", {"1.5"}, "'1.5' is not a whole number");
  refused("steps", {"99999999999"}, "'99999999999' is out of range: at most 2147483647");
  refused("inner.rate", {"fast"}, "'fast' is not a number");
  refused("loud", {"yes"}, "'yes' is neither true nor false");
  refused("yarn", {"nylon"}, "'nylon' is not one of wool or silk");
  refused("steps", {"1", "2"}, "expected one value, found 2");
  refused("path", {"caf\xe9"}, "\"caf\ufffd\" is not UTF-8 text, the only kind that settings are written in");
}

TEST(Fields, a_refused_value_leaves_the_field_as_it_was) {
  Outer c;
  Fields fields(c);
  read(fields, "mixed", {"silk"});
  EXPECT_THROW(read(fields, "mixed", {"wool", "nylon"}), Error);
  EXPECT_THAT(c.mixed, ElementsAre(Yarn::silk));
}

TEST(Fields, write_json_that_they_read_back) {
  Outer a;
  a.mixed = {Yarn::silk};
  a.inner = {1e-5, 9};
  Outer b;
  Fields from(a), to(b);
  from_json(to, to_json(from), Origin::checkpoint);
  EXPECT_EQ(to_json(to), to_json(from));
  EXPECT_EQ(to.at("inner.rate").origin(), Origin::checkpoint);
}

TEST(Fields, write_each_value_with_its_origin) {
  Outer c;
  Fields fields(c);
  read(fields, "inner.limit", {"4"});
  const std::string json = to_json(fields, JsonForm::with_origins);
  EXPECT_THAT(json, HasSubstr("\"limit\": {\n      \"value\": 4,\n      \"origin\": \"command line\""));
}

TEST(Fields, read_yaml_with_groups_and_lists) {
  Outer c;
  Fields fields(c);
  from_yaml(fields, "steps: 9\nloud: true\nmixed: [wool, silk]\ninner:\n  rate: 1.0e-6\n", Origin::file);
  EXPECT_EQ(c.steps, 9);
  EXPECT_TRUE(c.loud);
  EXPECT_EQ(c.mixed.size(), 2u);
  EXPECT_EQ(c.inner.rate, 1e-6);
}

TEST(Fields, refuse_names_in_a_file_that_are_no_fields) {
  Outer c;
  Fields fields(c);
  EXPECT_THAT([&] { from_yaml(fields, "inner:\n  rte: 1\n", Origin::file); },
              ThrowsMessage<Error>("inner.rte is not a setting, did you mean inner.rate"));
  EXPECT_THAT([&] { from_json(fields, "{\"steps\": \"x\"}", Origin::file); },
              ThrowsMessage<Error>("steps: 'x' is not a whole number"));
  EXPECT_THAT([&] { from_json(fields, "[1]", Origin::file); },
              ThrowsMessage<Error>("settings: not a JSON object"));
  EXPECT_THAT([&] { from_yaml(fields, "inner:\n  rate: 1\n  rate: 2\n", Origin::file); },
              ThrowsMessage<Error>(HasSubstr("inner.rate is given twice; leave one of them")));
  EXPECT_THAT([&] { from_yaml(fields, "inner:\n  ? rate: 1\n", Origin::file); },
              ThrowsMessage<Error>(HasSubstr("inner: a list or map stands where a name was expected")));
  EXPECT_THAT([&] { from_yaml(fields, "a: [", Origin::file); },
              ThrowsMessage<Error>(HasSubstr("settings: not YAML: ")));
}

TEST(Fields, give_a_number_back_to_the_bit) {
  EXPECT_TRUE(rc::check([](std::uint64_t bits) {
    const double value = std::bit_cast<double>(bits);
    RC_PRE(std::isfinite(value));
    double back = 0;
    read_word(write_word(value), back);
    RC_ASSERT(std::bit_cast<std::uint64_t>(back) == bits);
  }));
}
