// A small interpreter of inline PTX: what the instructions of weft/backend/cuda/native/gpu.h do by the words
// of NVIDIA's manual ("PTX ISA", warp-level matrix instructions, cp.async, cvt), so that the device form of a
// wrapper can be held against its twin. It knows what that file uses, and fails by name on anything else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace emulated::ptx {

struct Operand {
  std::string constraint, expression;  // "=r", "out[0]"
};
/// An asm statement as the source has it.
struct Statement {
  std::string code;
  std::vector<Operand> operands;
};
/// The asm statements in the body of a function, in order.
std::vector<Statement> statements_of(const std::string& source, const std::string& function);

/// What expressions hold, as the bits of a register. An output that nobody wrote is not there.
using Values = std::map<std::string, std::uint64_t>;

struct Copy {
  std::uint64_t to, from, wanted;  // bytes of 16; the others become zeros
};
struct Lane {
  Values values;
  std::vector<std::vector<Copy>> copies{1};  // by group, the last one is open
};
/// Addresses are places in these two.
struct Warp {
  std::array<Lane, 32> lanes;
  std::vector<std::uint8_t> shared, global;
  std::size_t of_group = 0;                              // of the four of a warpgroup
  bool begun = false, under_way = false, shown = false;  // products, and what is written for them
  std::uint64_t groups = 0;                              // of products that nobody has waited for
};
/// All lanes carry it out. Throws std::runtime_error for what it does not know.
void run(const Statement& statement, Warp& warp);

}  // namespace emulated::ptx
