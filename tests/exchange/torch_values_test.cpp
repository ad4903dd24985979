// Every opcode that a checkpoint may hold, and what becomes of it.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exchange/torch_files.h"

using namespace weft;
using namespace weft::testing;
using namespace std::string_literals;
using exchange::torch::Map;
using exchange::torch::Value;

namespace {

Value read(const std::string& opcodes) { return unpickled(pickle(opcodes)); }
std::int64_t whole(const std::string& opcodes) { return *read(opcodes).integer(); }
std::string text_of(const std::string& opcodes) { return *read(opcodes).text(); }

// The whole numbers of a list.
std::vector<std::int64_t> numbers(const Value& value) {
  std::vector<std::int64_t> out;
  for (const Value& item : *value.list()) out.push_back(*item.integer());
  return out;
}
using Numbers = std::vector<std::int64_t>;

}  // namespace

TEST(TorchValues, constants_are_themselves) {
  EXPECT_TRUE(read("N").is_none());
  EXPECT_TRUE(*read("\x88").boolean());
  EXPECT_FALSE(*read("\x89").boolean());
  EXPECT_EQ(whole("K\xff"), 255);
  EXPECT_EQ(whole("M\xff\xff"), 65535);
  EXPECT_EQ(whole("J\xfe\xff\xff\xff"), -2);
  EXPECT_EQ(*read("G\x3f\xf8\0\0\0\0\0\0"s).real(), 1.5);
  EXPECT_TRUE(std::isinf(*read("G\x7f\xf0\0\0\0\0\0\0"s).real()));
}

TEST(TorchValues, long_numbers_have_as_many_bytes_as_they_need) {
  EXPECT_EQ(whole("\x8a\0"s), 0);
  EXPECT_EQ(whole("\x8a\x01\xff"), -1);
  EXPECT_EQ(whole("\x8a\x02\xff\0"s), 255);
  EXPECT_EQ(whole("\x8a\x08\0\0\0\0\0\0\0\x80"s), INT64_MIN);
  EXPECT_EQ(whole("\x8b\x03\0\0\0\0\0\x01"s), 65536);
}

// As counts of operations are.
TEST(TorchValues, a_number_of_more_than_64_bits_keeps_only_its_name) {
  const Value value = read("\x8a\x0a" + std::string(10, '\x01'));
  EXPECT_EQ(value.integer(), nullptr);
  EXPECT_EQ(value.named()->name, "int");
  EXPECT_EQ(pickle_said("\x8a\x11" + std::string(17, '\x01')),
            "p: byte 2: a whole number of 17 bytes, at most 16 are read");
}

TEST(TorchValues, texts_and_bytes_come_in_every_length) {
  EXPECT_EQ(text_of(word("abc")), "abc");
  EXPECT_EQ(text_of("\x8c\x02h\xc3"s.substr(0, 2) + "hi"), "hi");
  EXPECT_EQ(text_of("\x8d\x02\0\0\0\0\0\0\0hi"s), "hi");
  EXPECT_EQ(text_of(word("\xed\xa0\x80")), "\xed\xa0\x80");  // a surrogate alone
  EXPECT_EQ(*read("B\x02\0\0\0\xff\0"s).bytes(), "\xff\0"s);
  EXPECT_EQ(*read("C\x01\xff").bytes(), "\xff");
  EXPECT_EQ(*read("\x8e\x01\0\0\0\0\0\0\0x"s).bytes(), "x");
  EXPECT_EQ(*read("\x96\x01\0\0\0\0\0\0\0x"s).bytes(), "x");
  EXPECT_EQ(read("C\x01\xff").text(), nullptr);
}

TEST(TorchValues, tuples_have_none_to_many) {
  EXPECT_EQ(numbers(read(")")), Numbers{});
  EXPECT_EQ(numbers(read("K\x01\x85")), Numbers{1});
  EXPECT_EQ(numbers(read("K\x01K\x02\x86")), (Numbers{1, 2}));
  EXPECT_EQ(numbers(read("K\x01K\x02K\x03\x87")), (Numbers{1, 2, 3}));
  EXPECT_EQ(numbers(read("(K\x01K\x02K\x03K\x04t")), (Numbers{1, 2, 3, 4}));
}

TEST(TorchValues, lists_and_sets_grow) {
  EXPECT_EQ(numbers(read("]K\x01"s + "a")), Numbers{1});
  EXPECT_EQ(numbers(read("](K\x01K\x02"s + "e")), (Numbers{1, 2}));
  EXPECT_EQ(numbers(read("\x8f(K\x01K\x02\x90")), (Numbers{1, 2}));
  EXPECT_EQ(numbers(read("(K\x01K\x02\x91")), (Numbers{1, 2}));
}

TEST(TorchValues, dicts_keep_their_order) {
  const Value value = read("}" + word("b") + "K\x01s(" + word("a") + "K\x02K\x05K\x03u");
  const Map& map = *value.map();
  EXPECT_EQ(map.type, "");
  ASSERT_EQ(map.entries.size(), 3U);
  EXPECT_EQ(*map.entries[0].first.text(), "b");
  EXPECT_EQ(*map.find("a")->integer(), 2);
  EXPECT_EQ(*map.entries[2].first.integer(), 5);
  EXPECT_EQ(map.find("c"), nullptr);
}

TEST(TorchValues, the_memo_gives_back_what_it_was_given) {
  EXPECT_EQ(numbers(read("K\x07q\0h\0\x86"s)), (Numbers{7, 7}));
  EXPECT_EQ(numbers(read("K\x07r\x01\0\0\0j\x01\0\0\0\x86"s)), (Numbers{7, 7}));
  EXPECT_EQ(numbers(read("K\x07\x94h\0\x86"s)), (Numbers{7, 7}));
  // A list that grows when it is already held.
  const Value grown = read("]q\0h\0K\x01"s + "a\x86");
  EXPECT_EQ(numbers((*grown.list())[0]), Numbers{1});
  EXPECT_EQ(numbers((*grown.list())[1]), Numbers{1});
}

TEST(TorchValues, what_is_popped_is_gone) {
  EXPECT_EQ(whole("K\x01K\x02"s + "0"), 1);
  EXPECT_EQ(whole("K\x01(0"), 1);
  EXPECT_EQ(whole("K\x01(K\x02K\x03"s + "1"), 1);
  EXPECT_EQ(numbers(read("K\x01"s + "2\x86")), (Numbers{1, 1}));
}

TEST(TorchValues, frames_and_protocols_from_2_to_5_are_read) {
  for (const char version : {'\x02', '\x03', '\x04', '\x05'})
    EXPECT_TRUE(unpickled("\x80"s + version + "\x95\xff\xff\xff\xff\xff\xff\xff\xffN.").is_none());
  EXPECT_EQ(refused([] { (void)unpickled("\x80\x06N."); }),
            "p: byte 0: a pickle of protocol 6, expected 2 to 5");
}

TEST(TorchValues, objects_are_maps_of_their_fields) {
  const std::string fields = "}" + word("x") + "K\x01s";
  const std::string cls = name("argparse", "Namespace");
  const std::string of_old = name("copy_reg", "_reconstructor") +
                             tuple(cls + name("__builtin__", "object") + "N") + "R" + fields + "b";
  const std::string with_words = cls + ")}\x92" + fields + "b";
  for (const std::string& opcodes : {cls + ")\x81" + fields + "b", of_old, with_words}) {
    const Value value = read(opcodes);
    EXPECT_EQ(value.map()->type, "argparse.Namespace");
    EXPECT_EQ(*value.map()->find("x")->integer(), 1);
    EXPECT_EQ(value.kind(), "an object");
  }
  EXPECT_EQ(read(name("types", "SimpleNamespace") + ")R" + fields + "b").map()->type,
            "types.SimpleNamespace");
}

TEST(TorchValues, a_name_may_come_from_the_stack) {
  const Value value = read(word("torch") + word("bfloat16") + "\x93");
  EXPECT_EQ(value.named()->name, "torch.bfloat16");
  EXPECT_TRUE(value.named()->arguments.empty());
  EXPECT_EQ(value.kind(), "a name");
}

TEST(TorchValues, enums_and_devices_keep_what_they_are_called_with) {
  const Value backend = read(name("megatron.core.transformer.enums", "AttnBackend") + "K\x05\x85R");
  EXPECT_EQ(backend.named()->name, "megatron.core.transformer.enums.AttnBackend");
  EXPECT_EQ(*backend.named()->arguments[0].integer(), 5);
  const Value device = read(name("torch", "device") + word("cuda") + "K\x01\x86R");
  EXPECT_EQ(device.named()->arguments.size(), 2U);
}

TEST(TorchValues, opaque_objects_keep_what_they_are_made_of) {
  const Value path = read(name("pathlib", "PosixPath") + word("a") + word("b") + "\x86R");
  EXPECT_EQ(path.named()->name, "pathlib.PosixPath");
  EXPECT_EQ(path.named()->arguments[0].list()->size(), 2U);
  const Value stream = read(name("_io", "BytesIO") + ")\x81" + "C\x01xK\0N\x87"s + "b");
  EXPECT_EQ(*(*stream.named()->arguments[1].list())[0].bytes(), "x");
}

TEST(TorchValues, an_object_that_is_filled_from_a_tuple_has_a_state) {
  const std::string metadata = "torch.distributed.checkpoint.metadata";
  const Value value = read(name(metadata, "TensorProperties") + ")\x81" + "K\x01\x85"s + "b");
  EXPECT_EQ(value.map()->type, metadata + ".TensorProperties");
  EXPECT_EQ(numbers(*value.map()->find("state")), Numbers{1});
  EXPECT_TRUE(read(name(metadata, "BytesStorageMetadata") + ")\x81").map()->entries.empty());
}

TEST(TorchValues, python_2_names_make_bytes_and_sets) {
  const std::string encoded =
      name("_codecs", "encode") + word("\xc3\xbf\xc2\x80" + "a"s) + word("latin1") + "\x86R";
  EXPECT_EQ(*read(encoded).bytes(), "\xff\x80" + "a"s);
  EXPECT_EQ(*read(name("__builtin__", "bytearray") + encoded + "\x85R").bytes(), "\xff\x80" + "a"s);
  EXPECT_EQ(*read(name("__builtin__", "bytes") + ")R").bytes(), "");
  EXPECT_EQ(numbers(read(name("__builtin__", "set") + "](K\x01K\x02"s + "e\x85R")), (Numbers{1, 2}));
}

TEST(TorchValues, an_ordered_dict_is_a_dict_without_its_attributes) {
  const Value value = read(ordered_dict() + word("a") + "K\x01s}" + word("_metadata") + "Nsb");
  EXPECT_EQ(value.map()->type, "");
  EXPECT_EQ(value.map()->entries.size(), 1U);
  EXPECT_EQ(numbers(read(name("torch", "Size") + "K\x02K\x03\x86\x85R")), (Numbers{2, 3}));
}

TEST(TorchValues, numpys_arrays_and_numbers_are_read) {
  const std::string dtype = name("numpy", "dtype") + word("f8") + "\x89\x88\x87R" +
                            tuple("K\x03" + word("<") + "NNN" + number(-1) + number(-1) + "K\0"s) + "b";
  const Value scalar =
      read(name("numpy.core.multiarray", "scalar") + dtype + "C\x08\0\0\0\0\0\0\xf8\x3f\x86R"s);
  EXPECT_EQ(*scalar.real(), 1.5);
  const Value array =
      read(name("numpy._core.multiarray", "_reconstruct") + name("numpy", "ndarray") + "K\0\x85"s + "C\x01"s +
           "b\x87R" + tuple("K\x01K\x01\x85" + dtype + "\x89" + "C\0"s) + "b");
  EXPECT_EQ(array.map()->type, "numpy.ndarray");
  const Value& type = (*array.map()->find("state")->list())[2];
  EXPECT_EQ(*(*type.map()->find("arguments")->list())[0].text(), "f8");
}

TEST(TorchValues, kinds_are_called_by_name) {
  EXPECT_EQ(read("N").kind(), "None");
  EXPECT_EQ(read("\x88").kind(), "a boolean");
  EXPECT_EQ(read("K\x01").kind(), "a whole number");
  EXPECT_EQ(read("G\0\0\0\0\0\0\0\0"s).kind(), "a number");
  EXPECT_EQ(read(word("")).kind(), "a text");
  EXPECT_EQ(read("C\0"s).kind(), "bytes");
  EXPECT_EQ(read("]").kind(), "a list");
  EXPECT_EQ(read("}").kind(), "a dict");
}
