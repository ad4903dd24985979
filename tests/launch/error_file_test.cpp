#include "weft/launch/error_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary.h"
#include "weft/base/file.h"

using namespace weft;
using namespace weft::launch;

TEST(ErrorFile, is_read_as_torchruns_workers_write_it) {
  const support::TemporaryDirectory folder;
  const auto said = [&](const char* content) {
    std::ofstream(folder / "e") << content;
    return message_in(folder / "e");
  };
  EXPECT_EQ(said(R"({"message": {"message": "ValueError: no", "extraInfo": {"timestamp": "1"}}})"),
            "ValueError: no");
  EXPECT_EQ(said(R"({"message": "plain"})"), "plain");
  for (const char* other : {"", "{", "[]", "{}", R"({"message": 5})", R"({"message": {"message": []}})"})
    EXPECT_EQ(said(other), "") << other;
  EXPECT_EQ(message_in(folder / "none"), "");
}

TEST(ErrorFile, that_is_written_is_read) {
  const support::TemporaryDirectory folder;
  write_error_file(folder / "e", "step 3: \"torn\" \xff", 12);
  EXPECT_EQ(read_file(folder / "e"),
            "{\"message\":{\"extraInfo\":{\"py_callstack\":\"\",\"timestamp\":\"12\"},\"message\":\"step 3: "
            "\\\"torn\\\" \xEF\xBF\xBD\"}}\n");
  EXPECT_EQ(message_in(folder / "e"), "step 3: \"torn\" \xEF\xBF\xBD");
  write_error_file(folder / "no" / "e", "nobody reads it", 12);
}
