// A process of any program, which mpirun or srun started: finds its seat, and becomes the program.
#include <iostream>

#include "weft/base/error.h"
#include "weft/cli/launch_work.h"
#include "weft/launch/placement.h"
#include "weft/launch/process.h"

namespace weft::cli {
namespace {

constexpr int cannot_run = 127;  // as a shell says it

}  // namespace

int take_a_seat(Args words) {
  const launch::Placement placement = launch::read_placement(words);
  launch::Environment environment = launch::environment_of_this_process();
  launch::apply(placement, environment);
  std::vector<std::string> program;
  for (const std::string_view word : words.subspan(launch::placement_words))
    program.push_back(with_local_rank(std::string(word), environment["LOCAL_RANK"]));
  if (program.empty()) fail(Kind::usage, "launch: --take-a-seat: no program follows");
  launch::die_with_parent();
  const std::string name = program[0], why = launch::become(std::move(program), environment);
  std::cerr << "launch: cannot run " << name << ": " << why << std::endl;
  return cannot_run;
}

}  // namespace weft::cli
