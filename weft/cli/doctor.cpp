// weft doctor: looks at this machine and at this build, and says what would slow a run or break it.
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <random>

#include "weft/backend/cpu/fast/instruction_set.h"
#include "weft/backend/open.h"
#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/base/format.h"
#include "weft/cli/build.h"
#include "weft/cli/doctor.h"
#include "weft/cli/verbs.h"
#include "weft/comm/threads.h"
#include "weft/ops/matmul.h"
#include "weft/tensor/host.h"

namespace weft::cli {
namespace {

struct DoctorOptions {
  bool json = false;
};
template <class Visitor>
void describe(Visitor& v, DoctorOptions& c) {
  v("json", c.json, "print one JSON object");
}

int allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

Finding processor() {
  const auto best = fast::best_here();
  std::string_view lacks;
  for (const auto set : fast::instruction_sets)
    if (set > best && fast::processor_runs(set)) lacks = fast::name(set);
  return loops_here(fast::name(best), lacks);
}

Finding memory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return {Verdict::warn, "memory", "the system does not say how much there is"};
  const auto total = static_cast<std::int64_t>(info.totalram) * info.mem_unit;
  return {Verdict::good, "memory", text(human_bytes(total), " in all")};
}

Finding products() {
  if (has_library("oneDNN")) return {Verdict::good, "products", "oneDNN multiplies matrices"};
  return {Verdict::warn, "products",
          "oneDNN is missing, our own loops multiply matrices: install libdnnl-dev and build again"};
}

Finding messages() {
  if (has_library("MPI")) return {Verdict::good, "messages", "threads and MPI"};
  return {Verdict::good, "messages", "threads; for several machines install libopenmpi-dev and build again"};
}

// a b by the device against the plain loops of the reference.
Finding arithmetic() {
  const auto fast = open_device("cpu"), plain = open_device("cpu:reference");
  constexpr std::int64_t n = 48;
  std::mt19937 draw(1);
  std::vector<float> a(n * n), b(n * n);
  for (auto* values : {&a, &b})
    for (float& value : *values) value = static_cast<float>(draw() % 2001) / 1000.0F - 1.0F;
  const auto product = [&](Device& device) {
    return to_host<float>(
        ops::matmul(from_host<float>(device, {n, n}, a), from_host<float>(device, {n, n}, b)));
  };
  const auto found = product(*fast), expected = product(*plain);
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::abs(double(found[i]) - double(expected[i])));
  if (!(worst < 1e-4))
    return {Verdict::bad, "arithmetic",
            text("a product is off by ", worst, ": this build cannot be trusted here")};
  return {Verdict::good, "arithmetic", "a product equals the one of plain loops"};
}

Finding ranks() {
  std::vector<float> sums(2);
  run_as_threads(2, [&](Communicator& world) {
    const auto device = open_device("cpu:reference");
    const Tensor x =
        from_host<float>(*device, {1}, std::vector<float>{1.0F + static_cast<float>(world.rank())});
    world.all_reduce(x, Reduce::sum).wait();
    sums[static_cast<std::size_t>(world.rank())] = to_host<float>(x)[0];
  });
  if (sums[0] != 3.0F || sums[1] != 3.0F)
    return {Verdict::bad, "ranks", text("two threads add 1 and 2 to ", sums[0], " and ", sums[1])};
  return {Verdict::good, "ranks", "two threads add up"};
}

Finding attempted(std::string_view what, const std::function<Finding()>& look) {
  try {
    return look();
  } catch (const std::exception& e) {
    return {Verdict::bad, std::string(what), e.what()};
  }
}

std::vector<Finding> look_at_everything() {
  const auto online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return {attempted("processor", processor),
          binding(allowed_processors(), online),
          attempted("memory", memory),
          attempted("products", products),
          attempted("messages", messages),
          attempted("arithmetic", arithmetic),
          attempted("ranks", ranks),
          attempted("loops", [] { return plain_loops(); }),
          gpus(),
          attempted("GPU kernels", gpu_kernels)};
}

int run_doctor(Args args) {
  DoctorOptions options;
  Fields fields(options);
  const auto others = read_flags(fields, args);
  if (!others.empty()) fail(Kind::usage, "doctor: takes no '", others[0], "'");
  const auto findings = look_at_everything();
  std::cout << (options.json ? findings_json(findings) : findings_text(findings));
  for (const Finding& f : findings)
    if (f.verdict == Verdict::bad) return static_cast<int>(Exit::failed);
  return static_cast<int>(Exit::done);
}

VerbHelp about_doctor() {
  return {.usage = "weft doctor [--json]",
          .examples = {{"weft doctor", "what would slow a run on this machine, or break it"},
                       {"mpirun -n 2 weft doctor", "the same for each rank as the launcher binds it"}},
          .topics = {{"Options", {{"--json", "", "print one JSON object"}}}}};
}

}  // namespace

Verb doctor_verb() { return {"doctor", "checks this machine and this build", run_doctor, about_doctor}; }

}  // namespace weft::cli
