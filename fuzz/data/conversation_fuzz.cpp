// Any bytes as a line of conversations: some, which are the same when they are written and read again, or a
// sentence that says what is wrong.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/error.h"
#include "weft/data/conversation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::data;
  try {
    const auto found = conversations_of({reinterpret_cast<const char*>(data), size});
    const auto again = conversations_of(line_of(found));
    if (again.size() != found.size()) __builtin_trap();
    for (std::size_t i = 0; i < found.size(); ++i)
      if (json_of(found[i].messages) != json_of(again[i].messages) || found[i].beside != again[i].beside)
        __builtin_trap();
  } catch (const weft::Error& e) {
    if (e.kind() != weft::Kind::data) __builtin_trap();
  }
  return 0;
}
