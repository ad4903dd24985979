// What weft selftest is made of: a small model under a person's layout, and its comparison with one rank.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/backend/plain_calls.h"
#include "weft/train/config.h"
#include "weft/train/disturbance.h"

namespace weft::cli {

/// What a training of the small model came to: whole tensors, whoever held their parts.
struct Trained {
  using Tensors = std::map<std::string, std::vector<float>>;
  Tensors before, after;
  std::vector<double> losses;
};

/// `asked` is complete; `raw` is the same before it was completed. Sizes become small, the layout stays.
TrainConfig shrunk(const TrainConfig& asked, TrainConfig raw);
/// The same small model on one rank.
TrainConfig alone(const TrainConfig& small);
/// The same in f32, whose rounding is too small to make another model of it.
TrainConfig in_f32(const TrainConfig& small);
/// On as many thread ranks as the configuration says. What falls back on plain loops is counted in
/// `plain_calls`, which one rank alone may ask for, as only its weights may begin off.
Trained train_small(const TrainConfig& small, PlainCalls* plain_calls = nullptr,
                    const Disturbance& disturbance = {});

/// One kind of parameter, all layers together. Largest numbers.
struct Comparison {
  std::string group;
  double change = 0;      // by training on one rank
  double difference = 0;  // between the two, after training
  double spacing = 0;     // of floats next to each other that are as large as the largest
  bool started_alike = true;
  double share() const { return change > 0 ? difference / change : difference; }
};
std::vector<Comparison> compare(const Trained& cut, const Trained& one);
/// What rounding in another order may come to, as a share of the change.
double allowed(const TrainConfig& small);
bool alike(const Comparison& compared, double within);

/// How far one rank moves, by groups: twice what trainings differ by at most whose weights begin off by as
/// much as their rounding, and whose gradients are rounded where the layout rounds them. Four of them, or as
/// many as it takes to excuse all of these.
std::map<std::string, double> moved_by_rounding(const TrainConfig& small, const Trained& one,
                                                const std::vector<Comparison>& different);
/// Whether this group's difference is one that rounding may have made. What is no number is none, nor what is
/// more than training changes.
bool may_be_rounding(const Comparison& compared, const std::map<std::string, double>& moved, double within);

}  // namespace weft::cli
