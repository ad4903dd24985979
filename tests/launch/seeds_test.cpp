// What the fuzzer of messages begins with is what agents say today: one of every kind.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/support/source_dir.h"
#include "weft/base/file.h"
#include "weft/launch/message.h"

using namespace weft;
using namespace weft::launch;

namespace {

/// Two agents meet, a rank falls still, another fails, all stop and begin again; and what else there is to
/// say.
std::vector<Message> story() {
  Failure failure{.rank = 1, .local_rank = 1, .host = "h", .process = 7, .end = {0, 9}, .age = 0.5};
  failure.last_words = "words";
  failure.logs = "logs";
  Doing doing{.round = 1, .rank = 1, .section = 1, .word = 2, .step = 70, .number = 9, .circle = 7};
  doing.circles = {{.id = 7, .words = 8, .place = 1}};
  PulseReading reading{.beat = 1, .rank = 1, .section = Section::training, .step = 70};
  reading.circles = {{.id = 7, .words = 8, .place = 1, .size = 2}};
  return {Join{.run_id = "none", .host = "h", .address = "fd00::1", .wanted_rank = 0, .slots = 2},
          Join{.run_id = "none", .host = "i", .address = "10.0.0.2", .slots = 2, .port = 4711, .voter = 1},
          Beat{},
          Pace{.round = 1, .rank = 1, .steps = 4, .worked = 0.5},
          doing,
          Still{.round = 1, .is = 1, .limit = 15},
          Failed{1, failure},
          Stopped{.round = 1, .status = 137, .progress = 5},
          Stopped{.round = 1, .status = 143, .progress = 5},
          Begin{.round = 2, .nodes = 2, .slots = 2, .world = 4, .master = "h", .peers = {{"h", 2}, {"i", 2}}},
          Done{.round = 2, .status = 0},
          Leaving{15},
          Stop{2, 15, 25},
          Finish{137, "report"},
          Refused{"why"},
          Vital{.round = 1, .age = 0.25, .reading = reading},
          Whereabouts{.round = 1, .rank = 1, .node = 1, .local_rank = 0, .host = "i", .process = 42},
          Resigned{}};
}

}  // namespace

TEST(Seeds, of_messages_are_of_this_version_and_of_every_kind) {
  std::string bytes = read_file(WEFT_SOURCE_DIR "/fuzz/launch/seeds/messages");
  ASSERT_TRUE(bytes.starts_with('m'));
  bytes.erase(0, 1);
  std::set<std::size_t> kinds;
  while (const auto message = take_frame(bytes, 1 << 14)) kinds.insert(message->index());
  EXPECT_TRUE(bytes.empty());
  EXPECT_EQ(kinds.size(), std::variant_size_v<Message>);
}

TEST(Seeds, of_messages_are_what_is_written_here) {
  std::string made = "m";
  for (const Message& message : story()) made += encode(message);
  const std::filesystem::path there = std::filesystem::temp_directory_path() / "weft_seed_messages";
  const bool same = read_file(WEFT_SOURCE_DIR "/fuzz/launch/seeds/messages") == made;
  if (!same) File(there, Open::create).write(made);
  EXPECT_TRUE(same) << "messages have changed: cp " << there.string() << " fuzz/launch/seeds/messages";
}
