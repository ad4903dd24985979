// The matrices that Muon updates: which they are, and how they are made orthogonal where ranks hold parts.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/optim/config.h"
#include "weft/optim/orthogonal.h"
#include "weft/optim/weights.h"

namespace weft {

/// Matrices but those of words; all else is Adam's or Lion's.
bool is_muons(const Parameter& parameter);

/// All matrices of a rank, whose inputs and results lie where gradients lay. Data-parallel ranks that cut
/// states share the matrices out, each does some whole ones and tells the others.
class MuonMatrices {
 public:
  MuonMatrices(Weights& weights, const MuonConfig& config);
  /// Collective over the ranks of a stage.
  void orthogonalize();

 private:
  struct Matrix {
    WeightBlock* block;
    const WeightSlot* slot;
    int doer;  // of the data-parallel ranks
  };
  void share_out();
  void gather_inputs() const;
  void tell_results() const;
  bool is_mine(const Matrix& matrix) const { return matrix.doer == matrix.block->readers.rank(); }
  bool comes_together(const Matrix& matrix) const;
  MatrixCut cut_of(const Matrix& matrix) const;
  void act(const Matrix& matrix) const;
  void as_a_whole(const Matrix& matrix, const Tensor& x) const;
  /// Of each matrix that lies in one.
  void each_band(const Parameter& parameter, const Tensor& x, const MatrixCut& cut) const;
  double scale(std::int64_t rows, std::int64_t columns) const;
  Communicator* circle_of(const Parameter& parameter) const;

  Weights& weights_;
  MuonConfig config_;
  NewtonSchulz how_;
  std::vector<Matrix> matrices_;  // by name
};

}  // namespace weft
