// The compressed all-reduce in double, all workers in one loop.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace weft::testing {

using WorkerVectors = std::vector<std::vector<double>>;  // a worker each

class PlainSigns {
 public:
  PlainSigns(std::size_t workers, std::size_t elements) {
    const std::size_t unit = workers * (8 * workers / std::gcd(workers, std::size_t{8}));
    const std::size_t padded = (elements + unit - 1) / unit * unit;
    worker_.assign(workers, std::vector<double>(padded));
    server_.assign(workers, std::vector<double>(padded / workers));
  }
  /// What all workers get of x.
  std::vector<double> reduce(const WorkerVectors& x) {
    const std::size_t workers = worker_.size(), each = server_[0].size();
    WorkerVectors told(workers);
    for (std::size_t i = 0; i < workers; ++i) {
      for (std::size_t k = 0; k < x[i].size(); ++k) worker_[i][k] += x[i][k];
      told[i] = taken(worker_[i]);
    }
    std::vector<double> out;
    for (std::size_t j = 0; j < workers; ++j) {
      for (std::size_t k = 0; k < each; ++k)
        for (std::size_t i = 0; i < workers; ++i) server_[j][k] += told[i][j * each + k] / double(workers);
      const std::vector<double> part = taken(server_[j]);
      out.insert(out.end(), part.begin(), part.end());
    }
    out.resize(x[0].size());
    return out;
  }

 private:
  /// Signs times a size, which leave the vector.
  static std::vector<double> taken(std::vector<double>& from) {
    double squares = 0;
    for (const double x : from) squares += x * x;
    const double size = std::sqrt(squares / double(from.size()));
    std::vector<double> out;
    for (double& x : from) {
      out.push_back(x >= 0 ? size : -size);
      x -= out.back();
    }
    return out;
  }
  WorkerVectors worker_, server_;
};

inline std::vector<double> mean_of(const WorkerVectors& x) {
  std::vector<double> out(x[0].size());
  for (const auto& row : x)
    for (std::size_t k = 0; k < out.size(); ++k) out[k] += row[k] / double(x.size());
  return out;
}

inline std::vector<float> floats(const std::vector<double>& x) { return {x.begin(), x.end()}; }

/// Numbers in [-1, 1] that f32 holds, another vector for every number.
inline std::vector<double> wave(std::size_t n, int which) {
  std::vector<double> out;
  for (std::size_t i = 0; i < n; ++i)
    out.push_back(double(float(std::sin(1.7 * double(i) + 0.61 * which + 0.013 * double(i) * which))));
  return out;
}

}  // namespace weft::testing
