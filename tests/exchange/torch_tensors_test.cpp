// Tensors in their storages: shared, seen from the side, of every type, and never beyond.
#include <gtest/gtest.h>

#include "tests/exchange/torch_files.h"

using namespace weft;
using namespace weft::testing;
using namespace std::string_literals;
using exchange::torch::Archive;
using exchange::torch::StoredTensor;

namespace {

std::string floats(const std::vector<float>& values) {
  std::string out;
  for (const float value : values) out += little(value);
  return out;
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Two rows of three.
const std::string six = floats({0, 1, 2, 3, 4, 5});
std::string of_six(std::int32_t offset, const std::string& sizes, const std::string& strides) {
  return tensor(storage("0", 6), offset, sizes, strides);
}
const std::string whole = of_six(0, "K\x02K\x03", "K\x03K\x01");

std::string version_3(const std::string& dtype, std::int32_t bytes, const std::string& sizes) {
  return name("torch._utils", "_rebuild_tensor_v3") +
         tuple(tuple(word("storage") + name("torch.storage", "UntypedStorage") + word("0") + word("cpu") +
                     number(bytes)) +
               "QK\0"s + tuple(sizes) + tuple("K\x01") + "\x89" + ordered_dict() + name("torch", dtype)) +
         "R";
}

}  // namespace

TEST(TorchTensors, a_tensor_says_where_it_lies) {
  const std::string stream = saved(whole, {six});
  const Archive archive(bytes_of(stream), "f");
  const StoredTensor& tensor = *archive.value().tensor();
  EXPECT_EQ(tensor.dtype, Dtype::f32);
  EXPECT_EQ(tensor.type, "float32");
  EXPECT_EQ(tensor.storage, "0");
  EXPECT_EQ(tensor.storage_elements, 6);
  EXPECT_EQ(tensor.size, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensor.strides, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(tensor.elements(), 6);
  EXPECT_TRUE(tensor.contiguous());
  EXPECT_EQ(as_text(archive.bytes(tensor)), six);
  EXPECT_EQ(archive.value().kind(), "a tensor");
}

TEST(TorchTensors, a_row_is_its_own_bytes_alone) {
  const std::string stream = saved(whole + of_six(3, "K\x03", "K\x01") + "\x86", {six});
  const Archive archive(bytes_of(stream), "f");
  const StoredTensor& row = *(*archive.value().list())[1].tensor();
  EXPECT_EQ(as_text(archive.bytes(row)), floats({3, 4, 5}));
  EXPECT_EQ(as_text(archive.storage(row)), six);
}

TEST(TorchTensors, a_column_has_a_storage_and_no_bytes_of_its_own) {
  const std::string stream = saved(of_six(1, "K\x02", "K\x03"), {six});
  const Archive archive(bytes_of(stream), "f");
  const StoredTensor& column = *archive.value().tensor();
  EXPECT_FALSE(column.contiguous());
  EXPECT_EQ(refused([&] { (void)archive.bytes(column); }),
            "f: a tensor in the storage 0 whose elements do not lie next to each other, expected one that is "
            "contiguous");
  EXPECT_EQ(as_text(archive.storage(column)), six);
}

TEST(TorchTensors, sizes_of_one_and_none_have_any_strides) {
  const std::string stream = saved(tuple(of_six(0, "K\x01K\x03", "K\x63K\x01") +
                                         of_six(100, "K\0K\x05"s, "K\x07K\x07") + of_six(5, "", "")),
                                   {six});
  const Archive archive(bytes_of(stream), "f");
  const auto at = [&](std::size_t i) { return *(*archive.value().list())[i].tensor(); };
  EXPECT_EQ(as_text(archive.bytes(at(0))), floats({0, 1, 2}));
  EXPECT_TRUE(archive.bytes(at(1)).empty());
  EXPECT_EQ(as_text(archive.bytes(at(2))), floats({5}));
}

TEST(TorchTensors, parameters_and_subclasses_are_tensors) {
  const std::string parameter =
      name("torch._utils", "_rebuild_parameter") + whole + "\x88" + ordered_dict() + "\x87R";
  const std::string of_type =
      name("torch._tensor", "_rebuild_from_type_v2") +
      tuple(name("torch._utils", "_rebuild_tensor_v2") + name("torch", "Tensor") +
            tuple(storage("0", 6) + "K\0"s + tuple("K\x06") + tuple("K\x01") + "\x89" + ordered_dict()) +
            "}") +
      "R";
  for (const std::string& opcodes : {parameter, of_type}) {
    const std::string stream = saved(opcodes, {six});
    const Archive archive(bytes_of(stream), "f");
    EXPECT_EQ(as_text(archive.bytes(*archive.value().tensor())), six);
  }
}

TEST(TorchTensors, types_without_storages_of_their_own_are_told_beside) {
  const std::string stream = saved(version_3("float8_e4m3fn", 4, "K\x04"), {"abcd"});
  const Archive archive(bytes_of(stream), "f");
  EXPECT_EQ(archive.value().tensor()->dtype, Dtype::f8e4m3);
  EXPECT_EQ(as_text(archive.bytes(*archive.value().tensor())), "abcd");
  EXPECT_EQ(saved_said(version_3("uint16", 3, "K\x01"), {"abc"}),
            "f: byte 153 of data.pkl: the storage 0 has 3 bytes, expected a multiple of 2");
}

TEST(TorchTensors, a_type_that_weft_has_not_is_named_when_its_bytes_are_asked_for) {
  const std::string stream = saved(tensor(storage("0", 2, "BoolStorage"), 0, "K\x02", "K\x01"), {"\x01\0"s});
  const Archive archive(bytes_of(stream), "f");
  const StoredTensor& tensor = *archive.value().tensor();
  EXPECT_FALSE(tensor.held);
  EXPECT_EQ(tensor.type, "bool");
  EXPECT_EQ(refused([&] { (void)archive.bytes(tensor); }),
            "f: a tensor of bool, a type that weft does not hold");
}

TEST(TorchTensors, every_storage_class_has_its_width) {
  for (const auto& [cls, width, type] : std::vector<std::tuple<std::string, std::size_t, std::string>>{
           {"HalfStorage", 2, "float16"},
           {"BFloat16Storage", 2, "bfloat16"},
           {"DoubleStorage", 8, "float64"},
           {"LongStorage", 8, "int64"},
           {"IntStorage", 4, "int32"},
           {"ShortStorage", 2, "int16"},
           {"CharStorage", 1, "int8"},
           {"ByteStorage", 1, "uint8"},
           {"ComplexFloatStorage", 8, "complex64"}}) {
    const std::string stream =
        saved(tensor(storage("0", 3, cls), 0, "K\x03", "K\x01"), {std::string(3 * width, 'x')});
    EXPECT_EQ(Archive(bytes_of(stream), "f").value().tensor()->type, type);
  }
}

TEST(TorchTensors, damaged_storages_are_told_when_they_are_asked_for) {
  std::string stream = saved(whole, {six});
  stream[stream.find(six) + 7] = '\x11';
  const Archive archive(bytes_of(stream), "f");
  EXPECT_EQ(refused([&] { (void)archive.bytes(*archive.value().tensor()); }),
            "f: the record data/0 is damaged: its bytes have another checksum than when they were written");
}

TEST(TorchTensors, a_storage_is_as_large_as_its_record) {
  EXPECT_EQ(saved_said(whole, {}), "f: byte 89 of data.pkl: the storage 0 is no record of the file");
  EXPECT_EQ(saved_said(whole, {"abc"}),
            "f: byte 89 of data.pkl: the storage 0 has 3 bytes, expected 6 times 4");
  EXPECT_EQ(saved_said(tensor(storage("0", -1), 0, "", ""), {six}),
            "f: byte 89 of data.pkl: the storage 0 has 24 bytes, expected -1 times 4");
  EXPECT_EQ(saved_said(tensor(storage(std::string(65, '0'), 6), 0, "", ""), {six}).substr(0, 31),
            "f: byte 153 of data.pkl: the st");
}

TEST(TorchTensors, a_persistent_id_is_a_storage) {
  EXPECT_EQ(saved_said("NQ"),
            "f: byte 3 of data.pkl: asks for None from outside, expected ('storage', class, key, "
            "location, elements)");
  EXPECT_EQ(
      saved_said(tuple("NNNNN") + "Q"),
      "f: byte 9 of data.pkl: asks for (None, None, None, …) from outside, expected ('storage', class, key, "
      "location, elements)");
}

TEST(TorchTensors, a_tensor_lies_within_its_storage) {
  const auto said = [](const std::string& opcodes) {
    const std::string all = saved_said(opcodes, {six});
    const std::string_view before = " of data.pkl: ";
    return all.substr(std::min(all.find(before) + before.size(), all.size()));
  };
  EXPECT_EQ(said(of_six(1, "K\x06", "K\x01")), "a tensor reaches element 6 of the storage 0, which has 6");
  EXPECT_EQ(said(of_six(0, "K\x02K\x02", "K\x05K\x01")),
            "a tensor reaches element 6 of the storage 0, which has 6");
  EXPECT_EQ(said(of_six(-1, "K\x01", "K\x01")), "a tensor begins at element -1 of its storage");
  EXPECT_EQ(said(of_six(0, "K\x01", "J\xff\xff\xff\xff")),
            "one of a tensor's strides is the number -1, expected a whole number that is not negative");
  EXPECT_EQ(said(of_six(0, "N", "K\x01")),
            "one of a tensor's sizes is None, expected a whole number that is not negative");
  EXPECT_EQ(said(of_six(0, "K\x01", "")), "a tensor has 1 sizes and 0 strides");
  const std::string huge = "\x8a\x08\0\0\0\0\0\0\0\x40"s;
  EXPECT_EQ(said(of_six(0, huge + huge, "K\0K\0"s)), "a tensor's sizes multiply to more than 63 bits hold");
  EXPECT_EQ(said(of_six(0, "K\0"s + huge + huge, "K\0K\0K\0"s)),
            "a tensor's sizes multiply to more than 63 bits hold");
  EXPECT_EQ(said(of_six(0, "K\x03", huge)),
            "a tensor reaches beyond any storage of the storage 0, which has 6");
}

TEST(TorchTensors, as_many_dims_as_numpy_has_are_read) {
  std::string sizes, strides;
  for (int i = 0; i < 65; ++i) sizes += "K\x01", strides += "K\x01";
  EXPECT_NE(saved_said(of_six(0, sizes, strides), {six}).find("a tensor has 65 dims, at most 64 are read"),
            std::string::npos);
}

TEST(TorchTensors, a_tensor_is_made_of_what_makes_tensors) {
  const std::string said = saved_said(name("torch._utils", "_rebuild_tensor_v2") + "K\x01\x85R", {});
  EXPECT_EQ(
      said,
      "f: byte 38 of data.pkl: calls torch._utils._rebuild_tensor_v2 with (the number 1), expected (storage, "
      "offset, size, strides, requires_grad, hooks[, metadata])");
  EXPECT_NE(saved_said(name("torch._tensor", "_rebuild_from_type_v2") +
                       tuple(name("torch", "Size") + name("torch", "Tensor") + ")}") + "R")
                .find("expected (what makes a tensor, its class, arguments, state)"),
            std::string::npos);
}

TEST(TorchTensors, a_tensor_of_another_file_is_not_found) {
  const std::string stream = saved("N");
  const Archive archive(bytes_of(stream), "f");
  EXPECT_EQ(refused([&] { (void)archive.bytes(StoredTensor{.storage = "7", .size = {}, .strides = {}}); }),
            "f: has no storage 7");
}
