// weft: hands the command line to a verb.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "weft/cli/verb.h"

namespace {

/// Where standard streams were closed, the first files that are opened would get their numbers, and our
/// lines.
void keep_standard_streams() {
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) close(fd);
}

bool has_one_thread() {
  const char* said = std::getenv("OMP_NUM_THREADS");
  return said && std::string_view(said) == "1";
}

/// Threads wait for each other by spinning, for so long that beside programs which use the same processors a
/// step takes ten times as long: libgomp knows of its own threads alone. How long it spins it asks the
/// environment before main() begins, so the program is started once more with what libgomp takes where it
/// sees that threads are too many. Who has said how they wait is listened to.
void wait_briefly(char** words) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY") || has_one_thread()) return;
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown || setenv("GOMP_SPINCOUNT", "1000", 0) != 0) return;
  execv(self.c_str(), words);  // where it returns, threads spin
}

bool computes(std::string_view verb) {
  constexpr std::array<std::string_view, 4> do_so{"train", "generate", "bench", "selftest"};
  return std::ranges::find(do_so, verb) != do_so.end();
}

}  // namespace

int main(int count, char** words) {
  keep_standard_streams();
  if (count > 1 && computes(words[1])) wait_briefly(words);
  const std::vector<std::string_view> args(words + 1, words + count);
  return weft::cli::run(weft::cli::verbs(), args);
}
