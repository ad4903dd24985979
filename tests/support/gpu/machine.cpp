// The machine itself, what it found, and the order of its operations.
#include "tests/support/gpu/machine.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace emulated {

std::byte* reserve(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

Machine& machine() {
  static Machine* it = new Machine;
  return *it;
}

namespace {

/// The source's lines that calls return to, by the system's own tool, asked once: "norm.cu:31".
std::vector<std::string> lines_of(const std::vector<Machine::Finding>& findings) {
  std::vector<std::string> out(findings.size());
  std::string command;
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    Dl_info image;
    if (!findings[i].pc || !dladdr(findings[i].pc, &image)) continue;
    char offset[32];
    std::snprintf(
        offset, sizeof offset, " %zx",
        std::size_t(static_cast<const char*>(findings[i].pc) - static_cast<const char*>(image.dli_fbase)) -
            1);
    if (command.empty()) command = "addr2line -se '" + std::string(image.dli_fname) + "'";
    command += offset;
    asked.push_back(i);
  }
  if (asked.empty()) return out;
  FILE* from = popen((command + " 2>/dev/null").c_str(), "r");
  if (!from) return out;
  char line[512];
  for (std::size_t i = 0; i < asked.size() && std::fgets(line, sizeof line, from); ++i) {
    line[std::strcspn(line, " \n")] = 0;
    out[asked[i]] = line + std::string(": ");
  }
  pclose(from);
  return out;
}

}  // namespace

void report(const std::string& what, const void* pc) {
  Machine& m = machine();
  // One finding a place and kind: numbers of threads and bytes do not make another.
  std::string kind = std::to_string(reinterpret_cast<std::uintptr_t>(pc));
  for (const char c : what)
    if (c < '0' || c > '9') kind += c;
  constexpr std::size_t enough = 50;
  if (m.found.size() < enough && m.said.insert(kind).second) m.found.push_back({what, pc});
}

std::vector<std::string> take_reports() {
  const auto lock = hold();
  machine().said.clear();
  const auto found = std::exchange(machine().found, {});
  std::vector<std::string> out = lines_of(found);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += found[i].what;
  return out;
}

Meter& meter() { return machine().meter; }
bool idle() { return machine().idle; }
void spoil(void* at, std::size_t bytes) { std::memset(at, idle() ? 0 : 0xFF, bytes); }
Idle::Idle() { machine().idle = true; }
Idle::~Idle() { machine().idle = false; }
void set_order(unsigned order) { machine().order = order; }
std::unique_lock<std::recursive_mutex> hold() { return std::unique_lock(machine().mutex); }

void join(Clock& into, const Clock& other) {
  if (into.size() < other.size()) into.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

std::uint32_t number(std::uint32_t stream, std::uint32_t position) {
  Machine& m = machine();
  m.operations.push_back({stream, position});
  return std::uint32_t(m.operations.size() - 1);
}

void as_operation(const Turn& turn) {
  Machine& m = machine();
  m.operation = turn.number;
  m.clock = turn.clock;
  m.operation_began = m.block_began = ++m.moment;
  m.history.push_back({m.moment, turn.number});
  m.known_before.fill({});
}

Turn turn() { return {machine().operation, machine().clock}; }

}  // namespace emulated
