// The order of matrices is that of their names: the same on all ranks of a stage, as blocks' is not.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/rules/muon.h"
#include "weft/optim/under_way.h"

namespace weft {
namespace {

NewtonSchulz how_of(const MuonConfig& config) {
  return {.rounds = config.rounds == MuonSteps::quintic ? quintic_steps() : simple_steps(),
          .steps = config.steps,
          .dtype = config.precision == MuonPrecision::medium ? Dtype::bf16 : Dtype::f32};
}

bool is_cut(const Parameter& parameter) {
  return parameter.pieces.size() != 1 ||
         parameter.pieces.front().where.local != parameter.pieces.front().where.global;
}

/// Of the whole, the rows and columns of a piece.
Tensor box(const Tensor& whole, const Piece& piece) {
  const Shard& at = piece.where;
  return whole.slice(0, at.offset[0], at.local[0]).slice(1, at.offset[1], at.local[1]);
}
Tensor held(const Tensor& x, const Piece& piece) {
  return x.view({x.elements()}).slice(0, piece.at, piece.where.local.elements()).view(piece.where.local);
}

/// visit(a matrix that lies in one: all of it, or [turns, rows of a turn, columns])
template <class Visit>
void each_band_of(const Parameter& parameter, const Tensor& x, bool split, const Visit& visit) {
  if (parameter.bands.empty() || !split) return visit(x);
  const std::int64_t turn = std::accumulate(parameter.bands.begin(), parameter.bands.end(), std::int64_t{0});
  const Tensor by_turn = x.view({exact(x.dim(0), turn), turn, x.dim(1)});
  std::int64_t at = 0;
  for (const std::int64_t rows : parameter.bands) {
    visit(by_turn.slice(1, at, rows));
    at += rows;
  }
}

}  // namespace

bool is_muons(const Parameter& parameter) {
  return parameter.shape.rank() == 2 && parameter.role == Role::inner &&
         (parameter.spread.cut & model_axes(View::experts) & Axes{Axis::etp, Axis::ep}).empty();
}

MuonMatrices::MuonMatrices(Weights& weights, const MuonConfig& config)
    : weights_(weights), config_(config), how_(how_of(config)) {
  for (WeightBlock& block : weights.blocks())
    for (const WeightSlot& slot : block.slots)
      if (is_muons(*slot.parameter)) matrices_.push_back({&block, &slot, 0});
  std::ranges::stable_sort(matrices_, [](const Matrix& a, const Matrix& b) {
    return a.slot->parameter->name < b.slot->parameter->name;
  });
  share_out();
}

// The most work first, to whoever has least.
void MuonMatrices::share_out() {
  std::vector<std::size_t> order(matrices_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto work = [this](std::size_t i) {
    const Shape& whole = matrices_[i].slot->parameter->pieces.front().where.global;
    return double(whole[0]) * double(whole[1]) * double(std::min(whole[0], whole[1]));
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return work(a) > work(b); });
  std::vector<double> all;
  for (const std::size_t i : order) {
    const Readers& readers = matrices_[i].block->readers;
    all.resize(std::size_t(readers.ranks()));
    const auto least = std::ranges::min_element(all);
    *least += work(i);
    matrices_[i].doer = readers.cut() ? int(least - all.begin()) : readers.rank();
  }
}

void MuonMatrices::orthogonalize() {
  gather_inputs();
  for (const Matrix& matrix : matrices_)
    if (is_mine(matrix)) act(matrix);
  tell_results();
}

void MuonMatrices::gather_inputs() const {
  UnderWay under_way;
  for (const WeightBlock& block : weights_.blocks()) {
    const bool asked =
        std::ranges::any_of(block.slots, [](const WeightSlot& slot) { return is_muons(*slot.parameter); });
    if (block.readers.cut() && asked) block.gather(block.grads, under_way);
  }
  under_way.wait();
}

void MuonMatrices::tell_results() const {
  UnderWay under_way;
  for (const Matrix& matrix : matrices_)
    if (matrix.block->readers.cut())
      under_way.add(matrix.block->readers.circle->broadcast(Weights::part(matrix.block->grads, *matrix.slot),
                                                            matrix.doer));
  under_way.wait();
}

Communicator* MuonMatrices::circle_of(const Parameter& parameter) const {
  if (weights_.data().mesh == nullptr || !is_cut(parameter)) return nullptr;
  Communicator& circle = weights_.data().mesh->along(Axis::tp);
  return circle.size() > 1 ? &circle : nullptr;
}

bool MuonMatrices::comes_together(const Matrix& matrix) const {
  return config_.ranks == MuonRanks::duplicated && circle_of(*matrix.slot->parameter) != nullptr;
}

MatrixCut MuonMatrices::cut_of(const Matrix& matrix) const {
  Communicator* circle = circle_of(*matrix.slot->parameter);
  if (circle == nullptr || config_.ranks == MuonRanks::blockwise) return {};
  const Shard& piece = matrix.slot->parameter->pieces.front().where;
  return {circle, piece.local[1] == piece.global[1] ? 0 : 1};
}

void MuonMatrices::act(const Matrix& matrix) const {
  const Parameter& parameter = *matrix.slot->parameter;
  const Tensor x = Weights::part(matrix.block->grads, *matrix.slot);
  if (comes_together(matrix)) return as_a_whole(matrix, x);
  each_band(parameter, x, cut_of(matrix));
}

// What is nowhere counts as zero, so that a sum brings the parts together, however they are cut.
void MuonMatrices::as_a_whole(const Matrix& matrix, const Tensor& x) const {
  const Parameter& parameter = *matrix.slot->parameter;
  const Tensor whole =
      ops::zeros(x.device(), parameter.pieces.front().where.global, Dtype::f32, Use::workspace);
  for (const Piece& piece : parameter.pieces)
    if (piece.where.replica == 0) ops::copy_into(box(whole, piece), held(x, piece));
  circle_of(parameter)->all_reduce(whole, Reduce::sum).wait();
  each_band(parameter, whole, {});
  for (const Piece& piece : parameter.pieces) ops::copy_into(held(x, piece), box(whole, piece));
}

void MuonMatrices::each_band(const Parameter& parameter, const Tensor& x, const MatrixCut& cut) const {
  const std::int64_t columns = x.dim(1), ranks = cut.circle ? cut.circle->size() : 1;
  const auto length = [&](std::int64_t rows) {
    return float(cut.circle == nullptr ? scale(rows, columns)
                 : cut.dim == 0        ? scale(rows * ranks, columns)
                                       : scale(rows, columns * ranks));
  };
  const auto act = [&](const Tensor& matrix) {
    weft::orthogonalize(matrix, how_, length(matrix.dim(0)), cut);
  };
  each_band_of(parameter, x, config_.split_qkv, [&](const Tensor& band) {
    if (band.rank() == 2) return act(band);
    const Tensor matrix = empty(x.device(), {band.dim(0) * band.dim(1), columns}, Dtype::f32, Use::workspace);
    ops::copy_into(matrix.view(band.shape()), band);
    act(matrix);
    ops::copy_into(band, matrix.view(band.shape()));
  });
}

double MuonMatrices::scale(std::int64_t rows, std::int64_t columns) const {
  const double out = double(rows), in = double(columns);
  switch (config_.scale) {
    case MuonScale::spectral:
      return config_.extra_scale * std::sqrt(std::max(out, in));
    case MuonScale::unit_rms_norm:
      return config_.extra_scale * std::sqrt(out / in);
    case MuonScale::shape_scaling:
      return config_.extra_scale * std::sqrt(std::max(1.0, out / in));
  }
  return config_.extra_scale;
}

}  // namespace weft
