#include "weft/base/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void refuses(const std::string& yaml, const std::string& why) {
  EXPECT_THAT([&] { static_cast<void>(read_yaml(yaml, "job.yaml")); },
              ThrowsMessage<Error>(HasSubstr("job.yaml: " + why)))
      << yaml;
}

TEST(Tree, is_read_and_written_as_the_same) {
  const Tree tree = Tree::map({{"name", "yes"},
                               {"count", Tree::number(3)},
                               {"of", Tree::list({"a", Tree::map({{"b c", Tree::yes(true)}}), Tree()})},
                               {"empty", Tree::list({})}});
  const std::string yaml = write_yaml(tree);
  EXPECT_EQ(yaml, R"(name: "yes"
count: 3
of:
  - a
  - "b c": true
  - null
empty: []
)");
  EXPECT_EQ(write_yaml(read_yaml(yaml, "again")), yaml);
}

TEST(Tree, is_one_document) {
  EXPECT_EQ(read_yaml("---\na: 1\n...\n", "job.yaml").find("a")->text, "1");
  refuses("", "no document, where one was expected");
  refuses("# nothing\n", "no document, where one was expected");
  refuses("a: 1\n---\nb: 2\n", "more than one document, where one was expected");
}

// yaml-cpp takes what stands behind such a map for empty documents, one behind the other without end.
TEST(Tree, ends_where_its_map_does) {
  refuses(R"({"kind": "List"},)", "more than one document");
  refuses(R"({"kind": "List"}, {"kind": "List"})", "more than one document");
  refuses(R"(["a"],)", "more than one document");
}

TEST(Tree, refuses_what_it_cannot_hold) {
  refuses("a: [", "not YAML: ");
  refuses("a: 1\na: 2\n", "a is given twice, the second time in line 2");
  refuses("? [a]\n: 1\n", "a key that is no word, in line 1");
  refuses(std::string(200, '[') + std::string(200, ']'), "nested too deeply, or too large by its aliases");
}

}  // namespace
}  // namespace weft
