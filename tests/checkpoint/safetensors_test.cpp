// One file of named tensors: what is written is read, and a header that lies is refused by name.
#include "weft/checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>

#include "tests/support/refused.h"
#include "tests/support/temporary.h"

using namespace weft;
using namespace weft::checkpoint;
using support::TemporaryDirectory;

namespace {

std::string file_of(std::uint64_t length, const std::string& header, std::size_t data) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + header + std::string(data, 'x');
}
std::string file_of(const std::string& header, std::size_t data) {
  return file_of(header.size(), header, data);
}
Header read(const std::string& file) { return read_header(std::as_bytes(std::span(file)), "f"); }

}  // namespace

TEST(Safetensors, reads_back_what_was_written) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "a.safetensors";
  std::vector<Entry> entries{{"byte", Dtype::u8, {3}, 0},
                             {"wide", Dtype::f64, {2, 1}, 0},
                             {"half", Dtype::bf16, {}, 0},
                             {"none", Dtype::f32, {0, 4}, 0}};
  const std::string first = lay_out(entries, {{"format", "pt"}});
  write_tensors(path, first, entries, [](const Entry& entry, File& file) {
    file.write(std::string(std::size_t(entry.bytes()), entry.name[0]));
  });
  const TensorFile file(path);
  EXPECT_EQ(file.header().notes.at("format"), "pt");
  EXPECT_EQ(file.header().entries.size(), 4U);
  EXPECT_EQ(file.header().data_at % 64, 0);
  EXPECT_EQ(file.at("wide").shape, (Shape{2, 1}));
  EXPECT_EQ(file.at("half").begin, 16);  // wider types first, so that each is aligned
  const auto bytes = file.bytes(file.at("byte"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "bbb");
  EXPECT_EQ(refused([&] { (void)file.at("wdie"); }), path.string() + ": holds no tensor wdie");
}

TEST(Safetensors, refuses_a_file_too_short_for_what_it_claims) {
  EXPECT_EQ(refused([] { (void)read("abc"); }), "f: holds 3 bytes, and a safetensors file starts with 8");
  EXPECT_EQ(refused([] { (void)read(file_of(100, "{}", 0)); }),
            "f: claims a header of 100 bytes, and holds 2 behind its first 8");
  EXPECT_EQ(refused([] { (void)read(file_of(~std::uint64_t{0}, "{}", 0)); }),
            "f: claims a header of 18446744073709551615 bytes, at most 100000000 are allowed");
}

TEST(Safetensors, refuses_a_header_that_is_no_json_object_of_tensors) {
  EXPECT_EQ(refused([] { (void)read(file_of("", 0)); }), "f: its header is no JSON object");
  EXPECT_EQ(refused([] { (void)read(file_of("[]", 0)); }), "f: its header is no JSON object");
  EXPECT_EQ(refused([] { (void)read(file_of("{]", 0)); }), "f: not JSON from byte 2 on");
  EXPECT_EQ(refused([] { (void)read(file_of(R"({"a":{"b":{"c":{}}}})", 0)); }),
            "f: its JSON is nested more than the 3 levels expected");
  EXPECT_EQ(refused([] { (void)read(file_of(R"({"a":1,"a":2})", 0)); }), R"(f: its JSON names "a" twice)");
  EXPECT_EQ(refused([] { (void)read(file_of(R"({"a":1e999})", 0)); }),
            "f: its JSON holds a number that is too large");
  EXPECT_EQ(refused([] { (void)read(file_of(R"({"a":1})", 0)); }), "f: a: number, expected an object");
  EXPECT_EQ(refused([] { (void)read(file_of(R"({"a":{}})", 0)); }), R"(f: a: has no "dtype")");
  EXPECT_EQ(refused([] { (void)read(file_of(R"({"__metadata__":3})", 0)); }),
            "f: __metadata__ is number, expected an object");
  EXPECT_EQ(refused([] { (void)read(file_of(R"({"__metadata__":{"a":3}})", 0)); }),
            R"(f: __metadata__: "a" is number, expected a text)");
}

TEST(Safetensors, refuses_names_that_are_empty_or_unprintable) {
  EXPECT_EQ(refused([] { (void)read(file_of(R"({"":{}})", 0)); }),
            R"(f: a tensor's name "" is empty, unprintable or too long)");
  EXPECT_EQ(refused([] { (void)read(file_of(R"({"a\u001b[2J":{}})", 0)); }),
            R"(f: a tensor's name "a\u001b[2J" is empty, unprintable or too long)");
}

namespace {
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}
}  // namespace

TEST(Safetensors, refuses_types_and_shapes_that_it_cannot_hold) {
  EXPECT_EQ(refused([] { (void)read(file_of(one("3", "[]", "[0,0]"), 0)); }),
            R"(f: a: "dtype" is number, expected a text)");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("BOOL")", "[]", "[0,0]"), 0)); }),
            R"(f: a: its type "BOOL" is none that weft holds)");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "7", "[0,0]"), 0)); }),
            R"(f: a: "shape" is number, expected a list)");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[-1]", "[0,0]"), 0)); }),
            R"(f: a: "shape" holds -1, expected whole numbers from 0 on)");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[1.0]", "[0,0]"), 0)); }),
            R"(f: a: "shape" holds 1.0, expected whole numbers from 0 on)");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[1,1,1,1,1,1,1]", "[0,4]"), 4)); }),
            R"(f: a: "shape" has 7 dimensions, at most 6 are supported)");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[4294967296,4294967296]", "[0,0]"), 0)); }),
            R"(f: a: "shape": shape: [4294967296, 4294967296] has more elements than 63 bits can count)");
  // 2^62 elements of 4 bytes are 2^64 bytes, which is 0 to who multiplies carelessly.
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[4611686018427387904]", "[0,0]"), 0)); }),
            "f: a: [4611686018427387904] of f32 is given 0 bytes, expected 4611686018427387904 times 4");
}

TEST(Safetensors, refuses_offsets_that_are_not_the_tensors) {
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[1]", "[0,4,8]"), 4)); }),
            "f: a: data_offsets holds 3 numbers, expected 2");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[1]", "[4,0]"), 4)); }),
            "f: a: lies in bytes 4 to 0 of the 4 that the file holds");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[2]", "[0,8]"), 4)); }),
            "f: a: lies in bytes 0 to 8 of the 4 that the file holds");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[2]", "[0,4]"), 4)); }),
            "f: a: [2] of f32 is given 4 bytes, expected 2 times 4");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[1]", "[0,4]"), 5)); }),
            "f: holds 5 bytes of tensors, and its header accounts for 4");
  EXPECT_EQ(refused([] { (void)read(file_of(one(R"("F32")", "[1]", "[1,5]"), 5)); }),
            "f: a starts at byte 1, and the one before it ends at 0: bytes between belong to none");
}

// Offsets are not a shape: their product may be more than 63 bits count.
TEST(Safetensors, reads_offsets_far_into_a_large_file) {
  const auto said = refused([] { (void)read(file_of(one(R"("U8")", "[1]", "[5000000000,5000000001]"), 1)); });
  EXPECT_EQ(said, "f: a: lies in bytes 5000000000 to 5000000001 of the 1 that the file holds");
}

TEST(Safetensors, refuses_tensors_that_overlap) {
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})";
  EXPECT_EQ(refused([&] { (void)read(file_of(header, 6)); }),
            "f: b starts at byte 2, and the one before it ends at 4: they overlap");
}

TEST(Safetensors, writes_no_file_that_it_would_refuse) {
  std::vector<Entry> twice{{"a", Dtype::f32, {1}, 0}, {"a", Dtype::f32, {1}, 0}};
  EXPECT_EQ(refused([&] { (void)lay_out(twice); }), "safetensors: a is given twice");
  std::vector<Entry> nameless{{"", Dtype::f32, {1}, 0}};
  EXPECT_EQ(refused([&] { (void)lay_out(nameless); }),
            "safetensors: a tensor's name of 0 bytes is empty, unprintable or too long");
  std::vector<Entry> strange{{"\xff", Dtype::f32, {1}, 0}};
  EXPECT_EQ(refused([&] { (void)lay_out(strange); }),
            "safetensors: a name is not UTF-8, which the format's JSON cannot say");
  const TemporaryDirectory folder;
  std::vector<Entry> fine{{"a", Dtype::f32, {1}, 0}};
  const std::string first = lay_out(fine);
  EXPECT_EQ(refused([&] {
              write_tensors(folder.path() / "f", first, fine,
                            [](const Entry&, File& file) { file.write("abc"); });
            }),
            "safetensors: a was written in 3 bytes, expected 4");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "f"));
}

TEST(Safetensors, reads_or_refuses_any_header_with_a_byte_changed) {
  std::vector<Entry> entries{{"a", Dtype::f32, {2, 3}, 0}, {"b.c", Dtype::bf16, {5}, 0}};
  std::string file = lay_out(entries) + std::string(34, 'x');
  for (std::size_t at = 0; at < file.size() - 34; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = file;
      changed[at] = char(changed[at] ^ (1 << bit));
      try {
        const Header header = read(changed);
        for (const Entry& entry : header.entries)
          ASSERT_LE(header.data_at + entry.begin + entry.bytes(), std::int64_t(file.size()));
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), Kind::data) << error.what();
      }
    }
  }
}
