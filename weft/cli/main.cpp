// weft: hands the command line to a verb.
#include <fcntl.h>
#include <unistd.h>

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

}  // namespace

int main(int count, char** words) {
  keep_standard_streams();
  const std::vector<std::string_view> args(words + 1, words + count);
  return weft::cli::run(weft::cli::verbs(), args);
}
