// Pickles that are refused, each with what was found and where. Nothing of any is run.
#include <gtest/gtest.h>

#include "tests/exchange/torch_files.h"

using namespace weft;
using namespace weft::testing;
using namespace std::string_literals;

namespace {

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::string asks_for(const std::string& what, int byte = 2) {
  return "p: runs Python code when it is read: byte " + std::to_string(byte) + " asks for " + what +
         ", which is no name that a checkpoint needs; nothing of it was run";
}

const std::string spoken = name("argparse", "Namespace") + ")\x81";

}  // namespace

TEST(TorchRefused, a_file_that_would_run_a_command_is_refused_by_the_commands_name) {
  const std::string attack = "\x80\x02" + name("os", "system") + "(" + word("ls") + "tR.";
  EXPECT_EQ(refused([&] { (void)unpickled(attack); }), asks_for("os.system"));
  EXPECT_EQ(
      saved_said(name("os", "system") + "(" + word("ls") + "tR"),
      "f: runs Python code when it is read: byte 2 of data.pkl asks for os.system, which is no name that a "
      "checkpoint needs; nothing of it was run");
}

TEST(TorchRefused, names_are_compared_whole) {
  for (const auto& [module, wanted] :
       std::vector<std::pair<std::string, std::string>>{{"posix", "system"},
                                                        {"builtins", "eval"},
                                                        {"builtins", "getattr"},
                                                        {"__builtin__", "exec"},
                                                        {"builtins", "__import__"},
                                                        {"subprocess", "Popen"},
                                                        {"functools", "partial"},
                                                        {"torch", "load"},
                                                        {"numpy.core.multiarray", "_load"},
                                                        {"copyreg", "__newobj__"},
                                                        {"operator", "attrgetter"},
                                                        {"runpy", "_run_code"},
                                                        {"webbrowser", "open"},
                                                        {"pip", "main"},
                                                        {"torch", "FloatStorage "},
                                                        {"torch", "Float"},
                                                        {"torch.FloatStorage", ""},
                                                        {"argparse", "Namespace.__init__"},
                                                        {"", ""}}) {
    EXPECT_EQ(pickle_said(name(module, wanted)), asks_for(module + "." + wanted));
    EXPECT_EQ(pickle_said(word(module) + word(wanted) + "\x93"),
              asks_for(module + "." + wanted, 12 + static_cast<int>(module.size() + wanted.size())));
  }
}

TEST(TorchRefused, a_name_in_a_message_is_one_short_line) {
  EXPECT_EQ(pickle_said(word("a\nb") + word(std::string(200, 'x')) + "\x93"),
            asks_for("a\\x0ab." + std::string(100, 'x') + "...", 215));
}

TEST(TorchRefused, opcodes_that_no_checkpoint_needs_are_named) {
  for (const auto& [code, called] :
       std::vector<std::pair<std::string, std::string>>{{"I", "INT"},
                                                        {"L", "LONG"},
                                                        {"F", "FLOAT"},
                                                        {"S", "STRING"},
                                                        {"T", "BINSTRING"},
                                                        {"U", "SHORT_BINSTRING"},
                                                        {"V", "UNICODE"},
                                                        {"P", "PERSID"},
                                                        {"p", "PUT"},
                                                        {"g", "GET"},
                                                        {"d", "DICT"},
                                                        {"l", "LIST"},
                                                        {"i", "INST"},
                                                        {"o", "OBJ"},
                                                        {"\x82", "EXT1"},
                                                        {"\x83", "EXT2"},
                                                        {"\x84", "EXT4"},
                                                        {"\x97", "NEXT_BUFFER"},
                                                        {"\x98", "READONLY_BUFFER"}})
    EXPECT_EQ(pickle_said(code + "1\n"),
              "p: byte 2: the opcode " + called + " is none that a checkpoint needs");
  EXPECT_EQ(pickle_said("\xff"), "p: byte 2: there is no opcode 255");
}

TEST(TorchRefused, a_pickle_begins_once_and_ends_once) {
  EXPECT_EQ(refused([] { (void)unpickled("N."); }), "p: byte 0: begins with 78, expected a pickle's 128");
  EXPECT_EQ(pickle_said("\x80\x02"), "p: byte 2: a second PROTO");
  EXPECT_EQ(refused([] { (void)unpickled(pickle("N") + "xy"); }), "p: byte 3: STOP with 2 bytes behind it");
  EXPECT_EQ(pickle_said("NN"), "p: byte 4: STOP with 2 values and 0 marks left, expected one value");
  EXPECT_EQ(pickle_said("N("), "p: byte 4: STOP with 1 values and 1 marks left, expected one value");
  EXPECT_EQ(pickle_said(""), "p: byte 2: STOP with 0 values and 0 marks left, expected one value");
}

TEST(TorchRefused, what_is_cut_short_says_how_much_is_missing) {
  const std::string whole = pickle(word("abc"));
  EXPECT_EQ(refused([&] { (void)unpickled(whole.substr(0, 8)); }),
            "p: byte 2: ends 1 bytes behind byte 7, expected 3 more: it is cut short");
  EXPECT_EQ(refused([&] { (void)unpickled(""); }),
            "p: byte 0: ends 0 bytes behind byte 0, expected 1 more: it is cut short");
  EXPECT_EQ(pickle_said("cos"), "p: byte 2: a name without its end: it is cut short");
  EXPECT_EQ(pickle_said("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"),
            "p: byte 2: ends 1 bytes behind byte 11, expected 18446744073709551615 more: it is cut short");
}

TEST(TorchRefused, the_stack_holds_what_is_taken_from_it) {
  EXPECT_EQ(pickle_said("0"), "p: byte 2: takes a value where there is none");
  EXPECT_EQ(pickle_said("N(\x85"), "p: byte 4: takes a value where there is none");
  EXPECT_EQ(pickle_said("t"), "p: byte 2: takes what lies above a mark, and there is none");
  EXPECT_EQ(pickle_said("q\0"s), "p: byte 2: takes a value where there is none");
}

TEST(TorchRefused, the_memo_is_no_larger_than_what_was_read) {
  EXPECT_EQ(pickle_said("Nr\xff\xff\xff\x7f"),
            "p: byte 3: remembers a value as number 2147483647, more than there can be so far");
  EXPECT_EQ(pickle_said("h\x05"), "p: byte 2: asks for the remembered value 5, which there is not");
  EXPECT_EQ(pickle_said("Nq\x03h\x01"), "p: byte 5: asks for the remembered value 1, which there is not");
}

TEST(TorchRefused, containers_take_what_is_theirs) {
  EXPECT_EQ(pickle_said(")Na"), "p: byte 4: puts 1 values into a tuple of 0, expected a list");
  EXPECT_EQ(pickle_said("](NNu"), "p: byte 6: puts 2 values into a list, expected a dict");
  EXPECT_EQ(pickle_said("](N\x90"), "p: byte 5: puts 1 values into a list, expected a set");
  EXPECT_EQ(pickle_said("}(Nu"),
            "p: byte 5: a dict is given 1 keys and values, expected as many keys as values");
}

TEST(TorchRefused, keys_are_what_python_could_have_as_keys) {
  EXPECT_EQ(pickle_said("}]Ns"), "p: byte 2: a dict's key is a list, which no dict may have");
  EXPECT_EQ(pickle_said("}]\x85Ns"), "p: byte 2: a dict's key is a tuple of 1, which no dict may have");
  EXPECT_EQ(pickle_said("}" + word("a") + "Ns" + word("a") + "Ns"),
            "p: byte 2: a dict has the key 'a' twice");
  EXPECT_EQ(pickle_said("}K\x01NsJ\x01\0\0\0Ns"s), "p: byte 2: a dict has the key 1 twice");
}

TEST(TorchRefused, nothing_holds_itself) {
  EXPECT_EQ(pickle_said("]q\0h\0a"s), "p: byte 2: a list holds itself");
  EXPECT_EQ(pickle_said("}q\0K\x01h\0s"s), "p: byte 2: a dict holds itself");
  EXPECT_EQ(pickle_said(spoken + "q\0}K\x01h\0sb"s),
            "p: byte 23: an object of argparse.Namespace holds itself");
}

TEST(TorchRefused, nesting_is_at_most_100_deep) {
  const std::string deep = "N" + repeated("\x85", 100);
  EXPECT_TRUE(unpickled(pickle(deep)).list() != nullptr);
  EXPECT_EQ(pickle_said(deep + "\x85"), "p: byte 3: values lie more than 100 deep in each other");
  EXPECT_NE(pickle_said("N" + repeated("\x85", 100'000)), "");
}

// The second half holds the first by a way that was not the deepest when it was looked at.
TEST(TorchRefused, depth_is_counted_along_the_longest_way) {
  const std::string half = "N" + repeated("\x85", 60);
  EXPECT_EQ(pickle_said(half + "q\0h\0"s + repeated("\x85", 60) + "\x86"),
            "p: byte 107: values lie more than 100 deep in each other");
}

TEST(TorchRefused, a_value_in_many_places_does_not_grow_by_powers) {
  EXPECT_EQ(pickle_said(")" + repeated("2\x86", 18)), "");
  const std::string said = pickle_said(")" + repeated("2\x86", 60));
  EXPECT_EQ(said.substr(said.find("what")),
            "what it holds stands in so many places that it amounts to more than 1020480 values");
}

TEST(TorchRefused, texts_are_utf8) {
  for (const std::string& bad :
       {"\x80"s, "\xc1\x81"s, "\xc3"s, "\xe0\x80\x80"s, "\xf4\x90\x80\x80"s, "\xf8"s, "\xe2\x82"s, "a\xffz"s})
    EXPECT_EQ(pickle_said(word(bad)), text("p: byte 2: a text of ", bad.size(), " bytes is not UTF-8"));
}

TEST(TorchRefused, only_names_are_called_and_each_in_its_own_way) {
  EXPECT_EQ(pickle_said("N)R"), "p: byte 4: calls None, expected a name");
  EXPECT_EQ(pickle_said(name("torch", "Size") + "NR"),
            "p: byte 15: calls torch.Size with None, expected a tuple");
  EXPECT_EQ(pickle_said(name("torch", "float32") + ")R"),
            "p: byte 18: calls torch.float32, which is only ever named");
  EXPECT_EQ(pickle_said(name("torch", "Size") + "K\x01\x85R"),
            "p: byte 17: calls torch.Size with (the number 1), expected (a tuple)");
  EXPECT_EQ(pickle_said(name("argparse", "Namespace") + "K\x01\x85R"),
            "p: byte 25: calls argparse.Namespace with (the number 1), expected ()");
  EXPECT_EQ(pickle_said(name("signal", "Signals") + "]\x85R"),
            "p: byte 20: calls signal.Signals with (a list), expected one or two numbers or texts");
  EXPECT_EQ(
      pickle_said(name("_codecs", "encode") + word("a") + word("rot13") + "\x86R"),
      "p: byte 35: calls _codecs.encode with (the text 'a', the text 'rot13'), expected (a text, 'latin1')");
  EXPECT_EQ(pickle_said(name("_codecs", "encode") + word("\xc4\x80") + word("latin1") + "\x86R"),
            "p: byte 37: a text that should be bytes holds a letter that is none");
  EXPECT_EQ(pickle_said(name("__builtin__", "set") + ")\x85R"),
            "p: byte 21: calls __builtin__.set with (a tuple of 0), expected (a list)");
}

TEST(TorchRefused, a_call_that_the_memo_gives_back_is_looked_at_alike) {
  EXPECT_EQ(pickle_said(name("torch", "float32") + "q\0"s + "0h\0)R"s),
            "p: byte 23: calls torch.float32, which is only ever named");
}

TEST(TorchRefused, objects_are_made_and_filled_once_and_as_they_are) {
  EXPECT_EQ(pickle_said(name("torch", "Size") + ")\x81"),
            "p: byte 15: makes an object of torch.Size, which has none in a checkpoint");
  EXPECT_EQ(pickle_said(name("argparse", "Namespace") + ")}NNs\x92"),
            "p: byte 27: NEWOBJ_EX with a dict for arguments by name, expected an empty dict");
  EXPECT_EQ(pickle_said("]}b"), "p: byte 4: fills a list with a dict, expected an object");
  EXPECT_EQ(pickle_said(spoken + ")b"),
            "p: byte 25: fills an object of argparse.Namespace with a tuple of 0, which is no state of it");
  EXPECT_EQ(pickle_said(spoken + "}b}b"), "p: byte 27: fills an object of argparse.Namespace a second time");
  EXPECT_EQ(pickle_said(spoken + "}q\0b"s + spoken + "h\0b\x86"s),
            "p: byte 52: fills an object of argparse.Namespace with the dict that fills another object");
  EXPECT_EQ(pickle_said(name("signal", "Signals") + "K\x01\x85R}b"),
            "p: byte 23: fills an object of signal.Signals with a dict, which is no state of it");
}

TEST(TorchRefused, the_reconstructor_makes_only_objects_with_fields) {
  const std::string old = name("copyreg", "_reconstructor");
  EXPECT_EQ(
      pickle_said(old + tuple(name("torch", "Size") + name("builtins", "object") + "N") + "R"),
      "p: byte 58: calls copyreg._reconstructor with (the name torch.Size, the name builtins.object, None), "
      "expected (a class that has fields, object, None)");
}

TEST(TorchRefused, a_pickle_that_stands_alone_has_no_tensors) {
  EXPECT_EQ(pickle_said("NQ"), "p: byte 3: holds a tensor, expected none in a pickle that stands alone");
}
