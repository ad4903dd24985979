// A worker's stdout or stderr on its way to a file, the console, or both; its last words are kept.
#pragma once

#include <filesystem>
#include <string>

#include "weft/launch/console.h"
#include "weft/launch/loop.h"

namespace weft::launch {

struct Ways {
  std::filesystem::path file;  // empty: none
  Console* console = nullptr;  // null: none
  std::string prefix;          // before each line on the console
};

/// The writing end goes to the worker. With a file alone the worker writes into it itself; otherwise the loop
/// reads a pipe. Lines of the console are whole: one of more than 64 KiB is broken, a last one without its
/// end gets it.
class Outlet {
 public:
  Outlet(Loop& loop, Ways ways);
  ~Outlet();
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  int for_worker() const { return theirs_.get(); }
  /// The worker has its copy.
  void started() { theirs_.reset(); }
  /// Reads what is there, without waiting for those who may still hold the other end.
  void drain();
  /// Ends a line that has no end.
  void finish();
  std::string last_words() const;

 private:
  static constexpr std::size_t longest_line = 64 << 10, kept = 4 << 10;
  void listen();
  enum class Got { bytes, nothing, end };
  Got read_once();
  void to_console(std::string_view bytes);
  void print(std::string_view lines);
  Loop& loop_;
  Ways ways_;
  Descriptor theirs_, ours_, file_;
  std::string line_;  // begun on the console, without its end yet
  std::string tail_;  // of everything
};

/// The last lines of what a worker said, without control characters: at most `lines` and 2 KiB.
std::string last_lines(std::string_view said, int lines);

}  // namespace weft::launch
