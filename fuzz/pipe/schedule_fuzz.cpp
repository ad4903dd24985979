// Schedules as text from anybody: they are read or refused with an Error, and what was read is written back
// the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "weft/base/error.h"
#include "weft/pipe/choose.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  try {
    const weft::pipe::Schedule schedule = weft::pipe::read_schedule(script, "file");
    const std::string written = weft::pipe::write_schedule(schedule);
    const weft::pipe::Schedule again = weft::pipe::read_schedule(written, "file");
    if (again.home != schedule.home || again.program != schedule.program) std::abort();
  } catch (const weft::Error&) {
  }
  return 0;
}
