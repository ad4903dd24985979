// Tokens beyond the next one: what stands between a model's last norm and its output while it trains.
//
//   h_k = norm(block(W [norm(word k places on) | norm(h_k-1)])),   h_0: the model's hidden states
//
// Each h_k goes through the model's output layer and measures the word k + 1 places on. Hidden states pass by
// unchanged. Where a text ends there is word 0, and nothing counts. W, norms and block are a depth's own, or
// one for all.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "weft/nn/embedding.h"
#include "weft/nn/heads.h"
#include "weft/nn/whole_linear.h"

namespace weft {

class FurtherTokens final : public Layer {
 public:
  struct Depth {
    Norm word_norm, hidden_norm;
    WholeLinear join;
    std::unique_ptr<Layer> block;
    Norm final_norm;
  };
  struct Options {
    int depths = 1;
    int first_loss = 0;  // number of the first depth's loss; the others follow
    float factor = 1;    // of each depth's loss in the objective
  };
  /// One for each of the depths, or one for all. The embedding reads the words at every depth; the output
  /// layer outlives this.
  FurtherTokens(std::vector<Depth> depths, std::unique_ptr<Embedding> words, LanguageHead& head,
                const Options& options);
  /// x [s (/tp), b, h] -> x; the pass gets a loss of every depth
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override;
  void each_read(const VisitParameter& visit) override;
  void each_read_back(const VisitParameter& visit) override { each_of_depths(visit); }
  void each_router(const VisitRouter& visit) override {
    for (const Depth& depth : depths_) depth.block->each_router(visit);
  }

 private:
  struct Saved {
    Sequences read;                       // words and positions of the depth
    Tensor words, hidden, joined, after;  // [s (/tp), b, h], but joined: [s (/tp), b, 2 h]
    NormStats word_stats, hidden_stats, final_stats;
  };
  Depth& at(int depth) { return depths_[std::size_t(std::min(depth, int(depths_.size()))) - 1]; }
  /// So many depths went through the same layer before.
  int round(int depth) const { return depth - std::min(depth, int(depths_.size())); }
  Tensor join(Pass& pass, Depth& depth, Saved& saved) const;
  Tensor join_backward(Pass& pass, int depth, const Saved& saved, const Tensor& dx);
  void each_of_depths(const VisitParameter& visit);

  std::vector<Depth> depths_;
  std::unique_ptr<Embedding> words_;
  LanguageHead& head_;
  Options options_;
};

}  // namespace weft
