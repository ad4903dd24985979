// Work cut for a rank's threads. Whatever is added up is added by pieces of fixed size, in their order, so
// that no result depends on how many threads there are.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace weft::fast {

/// Fewer elements than this are not worth waking a thread for.
inline constexpr std::int64_t worth_a_team = std::int64_t{1} << 14;

/// Which of the team's threads asks, 0 where there is no team.
inline int me() { return omp_get_thread_num(); }

/// body(first, last) on each thread, over items that do not touch each other; `elements` is all that there is
/// to do.
template <class Body>
void in_parallel(int threads, std::int64_t items, std::int64_t elements, const Body& body) {
  if (threads == 1 || items < 2 || elements < worth_a_team) {
    body(std::int64_t{0}, items);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t me = omp_get_thread_num();
    const std::int64_t team = omp_get_num_threads();
    body(items * me / team, items * (me + 1) / team);
  }
}

/// task(i, workspace) for i in [0, tasks), the next one to whoever is free.
template <class Task>
void share_out(std::int64_t tasks, int threads, std::int64_t floats, float* workspace, const Task& task) {
  // No more threads than tasks: the workspace has a piece for each.
  const int team = int(std::clamp<std::int64_t>(tasks, 1, threads));
#pragma omp parallel for schedule(dynamic, 1) num_threads(team) if (team > 1)
  for (std::int64_t i = 0; i < tasks; ++i) task(i, workspace + omp_get_thread_num() * floats);
}

struct Shares {
  std::int64_t tasks;
  int threads;
  std::int64_t floats;
  float* workspace;
};
/// The same, and behind it then(i, workspace) for one i after the other, in ascending order.
template <class Task, class Then>
void share_out_in_order(const Shares& how, const Task& task, const Then& then) {
  const int team = int(std::clamp<std::int64_t>(how.tasks, 1, how.threads));
#pragma omp parallel for ordered schedule(dynamic, 1) num_threads(team) if (team > 1)
  for (std::int64_t i = 0; i < how.tasks; ++i) {
    float* const mine = how.workspace + omp_get_thread_num() * how.floats;
    task(i, mine);
#pragma omp ordered
    then(i, mine);
  }
}

inline std::int64_t bytes_for(std::int64_t tasks, int threads, std::int64_t floats) {
  return std::min<std::int64_t>(tasks, threads) * floats * std::int64_t(sizeof(float));
}

/// Rows in pieces, at most 64, whose sums are kept apart: [first(i), first(i + 1)).
struct Pieces {
  explicit Pieces(std::int64_t row_count) : rows(row_count), each((row_count + 63) / 64) {
    if (each < 16) each = 16;
  }
  std::int64_t count() const { return (rows + each - 1) / each; }
  std::int64_t first(std::int64_t piece) const { return piece * each < rows ? piece * each : rows; }
  std::int64_t rows, each;
};

}  // namespace weft::fast
