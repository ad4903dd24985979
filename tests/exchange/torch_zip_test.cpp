// The container: every record where the directory says, stored, by a good name, and apart from the others.
#include <gtest/gtest.h>

#include "tests/exchange/torch_files.h"

using namespace weft;
using namespace weft::testing;
using namespace std::string_literals;
using exchange::torch::Archive;

namespace {

const ZipEntry one{"a/data.pkl", pickle("K\x01")};

std::string with(ZipEntry entry) { return stream_said(ZipFile({one, std::move(entry)}).whole()); }

bool reads_one(const std::string& stream) { return *Archive(bytes_of(stream), "f").value().integer() == 1; }

// A stream with `bytes` at `at`, counted from the end where that is below 0.
std::string changed(std::string stream, std::ptrdiff_t at, const std::string& bytes) {
  const auto from = static_cast<std::size_t>(at < 0 ? std::ssize(stream) + at : at);
  return stream.replace(from, bytes.size(), bytes);
}

const std::string plain = ZipFile({one}).whole();

}  // namespace

TEST(TorchZip, sizes_are_read_from_the_directory_alone) {
  ZipEntry follows = one;
  follows.flags = 0x0808;  // as torch writes: zeros before the bytes, a descriptor behind
  EXPECT_TRUE(reads_one(ZipFile({follows, {"a/data/0", "xyz", "", 0x0808}}).whole()));
  EXPECT_TRUE(reads_one(plain));
}

TEST(TorchZip, wide_records_and_ends_are_read) {
  ZipEntry wide = one;
  wide.wide = true;
  EXPECT_TRUE(reads_one(ZipFile({wide}).whole(true)));
  EXPECT_TRUE(reads_one(ZipFile({one}).whole(true)));
}

TEST(TorchZip, bytes_may_begin_anywhere) {
  for (const int aligned : {1, 7, 64}) {
    ZipEntry entry = one;
    entry.aligned = static_cast<std::uint16_t>(aligned);
    EXPECT_TRUE(reads_one(ZipFile({entry}).whole()));
  }
}

TEST(TorchZip, what_is_no_zip_of_torchs_says_what_it_is) {
  EXPECT_EQ(stream_said(""), "f: is no zip: it does not begin with PK and 3, 4");
  EXPECT_EQ(stream_said("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."),
            "f: is of torch before 1.6, which wrote no zip: load and save it again with a newer torch");
  EXPECT_EQ(stream_said(pickle("N")),
            "f: is a pickle that stands alone, expected the zip that torch.save writes");
  EXPECT_EQ(stream_said(ZipFile({ZipEntry{"a/x", ""}}).whole()),
            "f: a zip without the record data.pkl: torch.save did not write it");
  EXPECT_EQ(with({"a/constants.pkl", "", "", 0x0800, 8}),
            "f: is a program that TorchScript wrote, expected what torch.save writes");
  EXPECT_EQ(stream_said(ZipFile({ZipEntry{"a/b/data.pkl", pickle("N")}}).whole()),
            "f: a zip without the record data.pkl: torch.save did not write it");
}

TEST(TorchZip, all_records_lie_in_one_folder) {
  EXPECT_EQ(
      with({"b/version", "3\n"}),
      "f: a zip whose record 'b/version' does not lie in 'a/' as its others do: torch.save did not write it");
  EXPECT_EQ(stream_said(ZipFile({ZipEntry{"data.pkl", pickle("N")}}).whole()),
            "f: a zip whose record 'data.pkl' lies in no folder: torch.save did not write it");
}

TEST(TorchZip, numbers_are_little_endian) {
  EXPECT_EQ(with({"a/byteorder", "little"}), "");
  EXPECT_EQ(with({"a/byteorder", "big"}), "f: its numbers are of the byte order 'big', expected 'little'");
}

TEST(TorchZip, a_stream_that_is_cut_short_or_goes_on_is_refused) {
  const std::string said = "f: does not end as a zip does: it is cut short, or something lies behind it";
  EXPECT_EQ(stream_said(plain.substr(0, plain.size() - 1)), said);
  EXPECT_EQ(stream_said(plain + "x"), said);
  EXPECT_EQ(stream_said(plain + plain + "x"), said);
  EXPECT_EQ(stream_said(changed(plain, -2, "\x01")), said);
}

TEST(TorchZip, names_lead_nowhere_else) {
  for (const auto& [name, printed] :
       std::vector<std::pair<std::string, std::string>>{{"a/../b", "a/../b"},
                                                        {"/a/b", "/a/b"},
                                                        {"a//b", "a//b"},
                                                        {"a/./b", "a/./b"},
                                                        {"..", ".."},
                                                        {"a\\b", "a\\x5cb"},
                                                        {"a/b\0c"s, "a/b\\x00c"},
                                                        {"c:x", "c:x"},
                                                        {"", ""}})
    EXPECT_EQ(with({name, ""}), "f: a zip with a record '" + printed +
                                    "', which is no name of one: it leads elsewhere or nowhere");
  EXPECT_EQ(with({"a/empty/", ""}), "");
}

TEST(TorchZip, records_are_stored_and_open) {
  EXPECT_EQ(with({"a/x", "", "", 0x0800, 8}),
            "f: a zip whose record 'a/x' is compressed by method 8, expected 0, stored");
  EXPECT_EQ(with({"a/x", "", "", 0x0801}), "f: a zip whose record 'a/x' is encrypted");
  EXPECT_EQ(with({"a/x", "", "", 0x0840}),
            "f: a zip whose record 'a/x' has the flags 2112, expected none but 8 and 2048");
}

TEST(TorchZip, a_record_is_called_the_same_twice_and_another_is_not) {
  EXPECT_EQ(with({"a/x", "", "a/y"}), "f: a zip whose record 'a/x' is called 'a/y' where it lies");
  EXPECT_EQ(with({"a/data.pkl", pickle("K\x02")}), "f: a zip with two records 'a/data.pkl'");
}

TEST(TorchZip, records_lie_apart_and_before_the_directory) {
  ZipEntry inside{"a/x", "xyz"};
  inside.moved = 1;
  EXPECT_EQ(with(inside), "f: a zip whose record 'a/x' does not begin at byte 70, where its directory says");
  ZipEntry large{"a/x", "xyz"};
  large.taller = 1'000'000;
  EXPECT_EQ(with(large), "f: a zip whose record 'a/x' reaches beyond byte 131, where its directory begins");
  large.taller = 0xfffffff0;
  EXPECT_NE(with(large), "");
}

// A bomb without compression: many names for the same bytes.
TEST(TorchZip, records_that_share_bytes_are_refused) {
  ZipFile zip({one, {"a/x", "xyz"}});
  ZipEntry tall{"a/0", std::string(64, 'x')};
  tall.taller = 128;
  EXPECT_EQ(stream_said(ZipFile({one, tall, {"a/1", std::string(256, 'y')}}).whole()),
            "f: a zip whose records 'a/0' and 'a/1' overlap");
  zip.directory += zip.directory;
  zip.count *= 2;
  EXPECT_EQ(stream_said(zip.whole()), "f: a zip whose records 'a/data.pkl' and 'a/data.pkl' overlap");
}

TEST(TorchZip, the_directory_is_whole) {
  EXPECT_EQ(stream_said(changed(plain, -12, "\x05")),
            "f: a zip whose directory has 1 records, expected the 5 that its end record says");
  EXPECT_EQ(stream_said(changed(plain, -10, "\x01")),
            "f: a zip whose directory of 1 bytes at byte 69 does not end at its end record, byte 125");
  EXPECT_EQ(stream_said(changed(plain, 69, "X")), "f: a zip whose directory is broken at byte 69");
  EXPECT_EQ(stream_said(changed(plain, 69 + 28, "\xff")), "f: a zip whose directory is broken at byte 69");
  EXPECT_EQ(stream_said("PK\x03\x04" + std::string(20, '\0') + "PK\x05\x06" + std::string(8, '\0') +
                        little(std::uint32_t{0}) + little(std::uint32_t{24}) + "\0\0"s),
            "f: a zip without a record");
}

TEST(TorchZip, wide_ends_agree_with_what_they_end) {
  const std::string wide = ZipFile({one}).whole(true);
  EXPECT_EQ(stream_said(changed(wide, -34, "\x01")),
            "f: a zip whose wide end record is not at byte 1, where it should be");
  EXPECT_EQ(stream_said(changed(wide, -34, "\xff\xff\xff\xff\xff\xff\xff\x7f")),
            "f: a zip whose wide end record is not at byte 9223372036854775807, where it should be");
  EXPECT_EQ(stream_said(changed(wide, -50, "\x47")),
            "f: a zip whose directory of 56 bytes at byte 71 does not end at its end record, byte 125");
  EXPECT_EQ(stream_said(changed(wide, -12, "\x02\0"s)), "f: a zip whose two end records do not agree");
  EXPECT_EQ(stream_said(changed(plain, 69 + 42, "\xff\xff\xff\xff")),
            "f: a zip whose record 'a/data.pkl' has not got the wide sizes that it should have");
}

TEST(TorchZip, both_headers_of_a_record_say_the_same) {
  EXPECT_EQ(stream_said(changed(plain, 14, "\0"s)),
            "f: a zip whose record 'a/data.pkl' has another size or checksum where it lies");
  EXPECT_EQ(stream_said(changed(plain, 22, "\x01")),
            "f: a zip whose record 'a/data.pkl' has another size or checksum where it lies");
  EXPECT_EQ(stream_said(changed(plain, 6, "\x08")),
            "f: a zip whose record 'a/data.pkl' has other flags where it lies");
  EXPECT_EQ(stream_said(changed(plain, 69 + 20, "\x01")),
            "f: a zip whose record 'a/data.pkl' has 1 bytes stored, expected the 5 that it stands for");
}

TEST(TorchZip, damaged_bytes_are_told_by_their_checksum) {
  EXPECT_EQ(exchange::torch::crc32(bytes_of("123456789")), 0xcbf43926U);
  EXPECT_EQ(exchange::torch::crc32({}), 0U);
  EXPECT_EQ(stream_said(changed(plain, 67, "\x02")),
            "f: the record data.pkl is damaged: its bytes have another checksum than when they were written");
  ZipEntry unsummed = one;
  unsummed.checksum = false;
  EXPECT_TRUE(reads_one(ZipFile({unsummed}).whole()));
}
