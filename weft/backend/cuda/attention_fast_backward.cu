// Attention of small floats backward, by tensor cores: the kernels of each width are a source's, so that
// several may be compiled at once (attention_backward_tiles.h), and what lines have is added up here.
#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_lines.h"
#include "weft/backend/cuda/attention_tiles.h"

namespace weft::cuda {
namespace {

/// What lines have of a head and a distance; a thread each.
constexpr int distances_at_once = 256;
__global__ void __launch_bounds__(distances_at_once) add_lines(AttentionBackward job) {
  const Attend& a = job.attend;
  const std::int64_t task = std::int64_t(blockIdx.x) * distances_at_once + threadIdx.x;
  if (task >= job.tasks) return;
  const int n = a.groups * a.heads, tiles = (a.sq + tile - 1) / tile;
  const auto head = int(task / a.distances);
  const std::int64_t back = task % a.distances - a.bias0, length = line_length(a.sk);  // back: i - j
  float sum = 0;
  for (int b = 0; b < a.batch; ++b)
    for (int t = 0; t < tiles; ++t) {
      const std::int64_t at = back - t * tile + a.sk - 1;
      if (at >= 0 && at < length) sum += job.lines[(std::int64_t(b * n + head) * tiles + t) * length + at];
    }
  job.dbias[task] += sum;
}

}  // namespace

void attend_backward_fast(Queue& queue, const AttentionBackward& job) {
  with_width(job.attend, [&]<int d, int dv>(Width<d, dv>) { attend_backward_by_tiles<d, dv>(queue, job); });
  if (!job.lines) return;
  AttentionBackward sums = job;
  sums.tasks = job.attend.groups * job.attend.heads * job.attend.distances;
  gpu::launch(queue, {(sums.tasks + distances_at_once - 1) / distances_at_once, distances_at_once}, add_lines,
              sums);
}

}  // namespace weft::cuda
