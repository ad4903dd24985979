// The front of GGUF files: gguf-py's read, ours written and read, and everything that is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/exchange/gguf_files.h"
#include "tests/support/refused.h"

using namespace weft;
using namespace weft::testing;
namespace gguf = weft::exchange::gguf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

namespace {

std::string told_of(const std::string& bytes) {
  return weft::refused([&] { (void)header_of(bytes); });
}
std::string told_of(const MadeFile& file) { return told_of(file.bytes()); }

std::vector<float> numbers_of(const std::string& file, const gguf::StoredTensor& one, std::int64_t first,
                              std::size_t count) {
  std::vector<float> out(count);
  gguf::decode(one.type, std::as_bytes(std::span(file)).subspan(std::size_t(one.at), std::size_t(one.bytes)),
               first, out);
  return out;
}

template <class T>
T held(const gguf::Header& header, std::string_view key) {
  return *header.values.find(key)->as<T>();
}

}  // namespace

TEST(GgufHeader, says_what_gguf_py_wrote) {
  const gguf::Header found = header_of(read_file(gguf_golden("all_kinds.gguf")));
  EXPECT_EQ(held<std::string>(found, "general.architecture"), "test");
  EXPECT_EQ(held<std::int64_t>(found, "one.uint8"), 200);
  for (const char* name : {"one.int8", "one.int16", "one.int32", "one.int64"})
    EXPECT_EQ(held<std::int64_t>(found, name), -3) << name;
  for (const char* name : {"one.uint16", "one.uint32", "one.uint64"})
    EXPECT_EQ(held<std::int64_t>(found, name), 40000) << name;
  EXPECT_EQ(held<double>(found, "one.float32"), 1e-5);
  EXPECT_EQ(held<double>(found, "one.float64"), 0.1);
  EXPECT_TRUE(held<bool>(found, "one.bool"));
  EXPECT_EQ(held<std::string>(found, "one.string"), "Ärger");
  EXPECT_THAT(held<std::vector<std::int64_t>>(found, "list.int32"), ElementsAre(1, -2, 3));
  EXPECT_THAT(held<std::vector<double>>(found, "list.float32"), ElementsAre(0.5, -1.25));
  EXPECT_THAT(held<std::vector<std::string>>(found, "list.string"), ElementsAre("a", "", "日本"));
  EXPECT_THAT(held<std::vector<std::int64_t>>(found, "list.bool"), ElementsAre(1, 0));
}

TEST(GgufHeader, numbers_of_every_type_are_gguf_pys) {
  const std::string bytes = read_file(gguf_golden("all_kinds.gguf"));
  const auto expected = nlohmann::json::parse(read_file(gguf_golden("all_kinds.json")));
  const gguf::Header header = header_of(bytes);
  ASSERT_EQ(header.tensors.size(), 4);
  for (const gguf::StoredTensor& one : header.tensors) {
    EXPECT_THAT(one.sizes, ElementsAre(64, 6)) << one.name;
    EXPECT_EQ(numbers_of(bytes, one, 0, 384), expected.at(one.name).get<std::vector<float>>()) << one.name;
  }
}

// Two rows of random bits of each type of blocks, beside which stands what gguf-py reads of them.
TEST(GgufPacked, numbers_are_gguf_pys) {
  const std::string bytes = read_file(gguf_golden("packed.gguf"));
  const gguf::Header header = header_of(bytes);
  ASSERT_EQ(header.tensors.size(), 24);
  for (std::size_t i = 0; i < header.tensors.size(); i += 2) {
    const gguf::StoredTensor& packed = header.tensors[i];
    const std::vector<float> expected = numbers_of(bytes, header.tensors[i + 1], 0, 512);
    EXPECT_EQ(numbers_of(bytes, packed, 0, 512), expected) << packed.name;
    // In the middle of a block to the middle of one further on, and one alone.
    EXPECT_THAT(numbers_of(bytes, packed, 21, 279),
                ElementsAreArray(expected.begin() + 21, expected.begin() + 300))
        << packed.name;
    EXPECT_THAT(numbers_of(bytes, packed, 511, 1), ElementsAre(expected.back())) << packed.name;
  }
}

// From the numbers in f32 to those that gguf-py stored of them.
TEST(GgufHeader, rounds_to_the_bytes_of_gguf_py) {
  const std::string bytes = read_file(gguf_golden("all_kinds.gguf"));
  const gguf::Header header = header_of(bytes);
  const auto stored = [&](const gguf::StoredTensor& one) {
    return std::as_bytes(std::span(bytes)).subspan(std::size_t(one.at), std::size_t(one.bytes));
  };
  const std::vector<float> values = numbers_of(bytes, header.tensors.front(), 0, 384);
  for (const gguf::StoredTensor& one : header.tensors) {
    const auto found = gguf::encode(one.type, values, one.name);
    EXPECT_TRUE(std::ranges::equal(found, stored(one))) << one.name;
  }
}

TEST(GgufHeader, what_is_written_is_read_again) {
  gguf::Values values;
  values.add("a", gguf::whole(7));
  values.add("b", gguf::real(1e-6));
  values.add("c", gguf::yes(true));
  values.add("d", gguf::text_of("x"));
  values.add("e", gguf::words_of({"one", "two"}));
  values.add("f", gguf::wholes_of({-1, 2}));
  values.add("g", gguf::reals_of({0.25}));
  values.add("h", gguf::answers_of({1, 0}));
  EXPECT_FALSE(values.add("a", gguf::whole(8)));
  std::vector<gguf::StoredTensor> tensors{
      {.name = "small", .sizes = {3}}, {.name = "blocks", .sizes = {32, 2}, .type = gguf::NumberType::q8_0}};
  std::string bytes = gguf::header_bytes(values, tensors);
  EXPECT_EQ(bytes.size() % 32, 0);
  bytes.resize(bytes.size() + 32 + 68);
  const gguf::Header found = header_of(bytes);
  EXPECT_EQ(held<std::int64_t>(found, "a"), 7);
  EXPECT_EQ(held<double>(found, "b"), 1e-6);
  EXPECT_THAT(held<std::vector<std::string>>(found, "e"), ElementsAre("one", "two"));
  EXPECT_THAT(held<std::vector<std::int64_t>>(found, "f"), ElementsAre(-1, 2));
  EXPECT_THAT(held<std::vector<std::int64_t>>(found, "h"), ElementsAre(1, 0));
  ASSERT_EQ(found.tensors.size(), 2);
  EXPECT_EQ(found.tensors[1].at, tensors[1].at);
  EXPECT_EQ(found.tensors[1].bytes, 68);
}

TEST(GgufHeader, refuses_other_files_and_versions) {
  EXPECT_EQ(told_of("GGML" + raw(std::uint32_t{3}) + std::string(16, '\0')),
            "FILE: does not begin with GGUF");
  EXPECT_EQ(told_of(std::string("GG")), "FILE: ends at byte 2, within its magic");
  EXPECT_EQ(told_of("GGUF" + raw(std::uint32_t{1}) + std::string(16, '\0')),
            "FILE: is of GGUF's version 1, and weft reads 2 and 3: make it again with a newer llama.cpp");
  EXPECT_EQ(told_of("GGUF" + raw(std::uint32_t{0x03000000}) + std::string(16, '\0')),
            "FILE: is of a machine that stores numbers the other way round, which weft does not read");
}

TEST(GgufHeader, refuses_counts_and_lengths_beyond_the_file) {
  EXPECT_EQ(told_of({.tensors = 9}), "FILE: byte 8 says 9 tensors, and 16 bytes are left");
  EXPECT_EQ(told_of({.keys = 1000}), "FILE: byte 16 says 1000 keys, and 8 bytes are left");
  EXPECT_EQ(told_of({.keys = 1, .said = raw(std::uint64_t{99}) + "key"}),
            "FILE: byte 24 says 99 bytes of a key, and 32 bytes are left");
  EXPECT_EQ(told_of({.keys = 1,
                     .said = counted("k") + raw(std::uint32_t{9}) + raw(std::uint32_t{5}) +
                             raw(~std::uint64_t{0})}),
            "FILE: byte 41 says 18446744073709551615 elements of k, and 15 bytes are left");
}

TEST(GgufHeader, refuses_what_keys_cannot_be) {
  EXPECT_EQ(told_of({.keys = 2, .said = u32_key("k", 1) + u32_key("k", 2)}), "FILE: says k twice");
  EXPECT_EQ(told_of({.keys = 1, .said = counted("k") + raw(std::uint32_t{13})}),
            "FILE: k is of type 13, which GGUF does not have");
  EXPECT_EQ(
      told_of({.keys = 1,
               .said = counted("k") + raw(std::uint32_t{9}) + raw(std::uint32_t{9}) + raw(std::uint64_t{1})}),
      "FILE: k is a list of lists, which weft does not read");
  EXPECT_EQ(told_of({.keys = 1, .said = counted("k") + raw(std::uint32_t{7}) + "\2"}),
            "FILE: k is a bool of 2, expected 0 or 1");
  EXPECT_EQ(told_of({.keys = 1, .said = counted("k") + raw(std::uint32_t{10}) + raw(~std::uint64_t{0})}),
            "FILE: k is 18446744073709551615, which is too large");
  EXPECT_EQ(told_of({.keys = 1, .said = counted("") + raw(std::uint32_t{4}) + raw(std::uint32_t{1})}),
            "FILE: a key of 0 bytes, expected 1 to 256");
  EXPECT_EQ(told_of({.keys = 1, .said = u32_key("general.alignment", 24)}),
            "FILE: general.alignment is 24, expected a power of two as u32");
  EXPECT_EQ(told_of({.keys = 1, .said = text_key("general.alignment", "x")}),
            "FILE: general.alignment is a text, expected a power of two as u32");
}

TEST(GgufHeader, refuses_what_tensors_cannot_be) {
  const auto one = [](const std::string& said) { return told_of({.tensors = 1, .said = said, .data = 64}); };
  const std::string reads =
      ", and weft reads F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL "
      "and "
      "IQ4_XS: take the file of one of these, or the model that it was made of";
  EXPECT_EQ(one(tensor_said("t", 4, 16, 0)), "FILE: t is of IQ2_XXS" + reads);
  EXPECT_EQ(one(tensor_said("t", 4, 77, 0)), "FILE: t is of type 77" + reads);
  EXPECT_EQ(one(tensor_said("t", 288, 12, 0)), "FILE: t has rows of 288 numbers, and Q4_K has blocks of 256");
  EXPECT_EQ(one(tensor_said("t", 33, 8, 0)), "FILE: t has rows of 33 numbers, and Q8_0 has blocks of 32");
  EXPECT_EQ(one(tensor_said("t", 0, 0, 0)), "FILE: t has a size of 0, expected 1 or more");
  EXPECT_EQ(one(tensor_said("t", 4, 0, 8)), "FILE: t lies at 8, which is no multiple of 32");
  EXPECT_EQ(one(tensor_said("t", 1000, 0, 0)), "FILE: t is larger than the file");
  EXPECT_EQ(one(tensor_said("t", 512, 10, 0)),
            "FILE: t reaches beyond the file's 128 bytes: it is cut off, or none of its kind");
  EXPECT_EQ(one(tensor_said("t", 20, 0, 0)),
            "FILE: t reaches beyond the file's 128 bytes: it is cut off, or none of its kind");
  EXPECT_EQ(one(tensor_said("t", 4, 0, 96)),
            "FILE: t reaches beyond the file's 128 bytes: it is cut off, or none of its kind");
  EXPECT_EQ(one(counted("t") + raw(std::uint32_t{5})), "FILE: t has 5 dimensions, expected at most 4");
  EXPECT_EQ(one(counted("") + raw(std::uint32_t{1})), "FILE: a tensor's name of 0 bytes, expected 1 to 256");
  std::string large = counted("t") + raw(std::uint32_t{4});
  for (int i = 0; i < 4; ++i) large += raw(std::uint64_t{1} << 33);
  EXPECT_EQ(one(large), "FILE: t is larger than the file");
}

TEST(GgufHeader, refuses_tensors_of_one_name_and_those_that_overlap) {
  EXPECT_EQ(
      told_of({.tensors = 2, .said = tensor_said("t", 4, 0, 0) + tensor_said("t", 4, 0, 32), .data = 64}),
      "FILE: holds two tensors t");
  EXPECT_EQ(
      told_of({.tensors = 2, .said = tensor_said("t", 9, 0, 0) + tensor_said("u", 4, 0, 32), .data = 64}),
      "FILE: t and u overlap");
}

TEST(GgufBlocks, refuses_numbers_that_have_no_place_in_one) {
  std::vector<float> values(32, 1);
  values[3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(weft::refused([&] { (void)gguf::encode(gguf::NumberType::q8_0, values, "t"); }),
            "t: holds a number that is not finite, which Q8_0 has no place for");
  values[3] = 1e7;
  EXPECT_EQ(weft::refused([&] { (void)gguf::encode(gguf::NumberType::q8_0, values, "t"); }),
            "t: holds 1e+07, and Q8_0 goes up to 8.3e6: write it as bf16 or f32");
}
