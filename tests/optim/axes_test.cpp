// Parameters of every kind on a mesh with experts: who is added to whom, what counts once, what is written
// once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "tests/support/numbers.h"
#include "tests/support/refused.h"
#include "weft/backend/open.h"
#include "weft/comm/threads.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/optim/grad_reduction.h"
#include "weft/optim/norms.h"
#include "weft/optim/tied.h"

using namespace weft;

namespace {

const Init ones{.how = Init::How::constant, .value = 1, .spread = 0};

Along along(const ProcessMesh& mesh, Axis axis) {
  return {axis, mesh.place(axis), mesh.layout().degree(axis)};
}

/// [4 experts, 8]: two or four ranks along ep have experts of their own, cut along etp.
Parameter expert(const ProcessMesh& mesh) {
  const ParallelLayout& layout = mesh.layout();
  const int ep = layout.degree(Axis::ep), etp = layout.degree(Axis::etp);
  Parameter out;
  out.name = "experts";
  out.shape = {4 / ep, 8 / etp};
  out.pieces = {
      {{{4, 8}, {mesh.place(Axis::ep) * (4 / ep), mesh.place(Axis::etp) * (8 / etp)}, out.shape}, 0}};
  out.init = ones;
  out.spread = spread_in(View::experts, {Axis::ep, Axis::etp});
  return out;
}

/// Queries of one's own, and a key that two neighbours hold: [4 queries, 2 keys].
Parameter shared_key(const ProcessMesh& mesh) {
  const int rank = mesh.place(Axis::tp), group = rank / 2;
  Parameter out;
  out.name = "qkv";
  out.shape = {4, 3};
  out.pieces = {{{{12, 3}, {group * 6 + rank % 2 * 2, 0}, {2, 3}}, 0},
                {{{12, 3}, {group * 6 + 4, 0}, {2, 3}}, 6}};
  out.init = ones;
  out.spread = spread_in(View::dense, Axis::tp);
  out.shared = {.along = Axis::tp, .ranks = 2};
  return out;
}

std::vector<Parameter> parameters(const ProcessMesh& mesh) {
  std::vector<Parameter> out;
  out.push_back(whole_parameter("bias", {5}, ones));
  out.push_back(whole_parameter("gain", {6}, ones));
  out.back().spread = out.back().spread.with_terms(Axis::tp);
  out.push_back(row_parameter("rows", {8, 3}, ones, along(mesh, Axis::tp)));
  out.push_back(column_parameter("columns", {3, 8}, ones, along(mesh, Axis::tp)));
  if (mesh.layout().has(View::experts)) out.push_back(expert(mesh));
  if (mesh.layout().degree(Axis::tp) == 4) out.push_back(shared_key(mesh));
  return out;
}

const ParallelLayout::Degrees meshes[] = {{.tp = 2, .cp = 2, .dp = 2, .ep = 4, .etp = 1},
                                          {.tp = 2, .cp = 2, .dp = 2, .ep = 2, .etp = 2},
                                          {.tp = 2, .cp = 2, .dp = 1, .pp = 2, .ep = 2},
                                          {.tp = 4, .dp = 2}};

class OneRank {
 public:
  OneRank(const ProcessMesh& mesh, bool cut_states)
      : parameters_(parameters(mesh)),
        weights_(
            [this](const VisitParameter& visit) {
              for (Parameter& p : parameters_) visit(p);
            },
            *device_, Dtype::f32, Weights::For::training,
            {.mesh = &mesh, .cut = cut_states ? CutUp::states : CutUp::nothing, .bucket = 20}),
        reduction_(weights_, ReduceWhen::after_backward) {
    weights_.initialize(1);
  }
  Weights& weights() { return weights_; }
  std::vector<Parameter>& parameters_here() { return parameters_; }
  void reduce(double mine) {
    for (const Parameter& p : parameters_) ops::fill(p.grad.sum(), mine);
    reduction_.begin(1);
    reduction_.finish();
  }

 private:
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  std::vector<Parameter> parameters_;
  Weights weights_;
  GradReduction reduction_;
};

void on_each_mesh(const std::function<void(const ProcessMesh&)>& body) {
  for (const ParallelLayout::Degrees& degrees : meshes) {
    const ParallelLayout layout(degrees);
    run_as_threads(layout.world(), [&](Communicator& world) { body(ProcessMesh(layout, world)); });
  }
}

/// Ranks are told apart by powers of two.
double sum_of(const std::vector<int>& ranks) {
  double sum = 0;
  for (const int rank : ranks) sum += std::exp2(rank);
  return sum;
}

double sum_along(const ProcessMesh& mesh, Axes some) {
  for (const std::vector<int>& group : mesh.layout().groups(some))
    if (std::ranges::find(group, mesh.world().rank()) != group.end()) return sum_of(group);
  return 0;
}

}  // namespace

TEST(Axes, say_whose_gradients_are_added) {
  on_each_mesh([](const ProcessMesh& mesh) {
    OneRank rank(mesh, false);
    rank.reduce(std::exp2(mesh.world().rank()));
    for (const Parameter& p : rank.parameters_here()) {
      const std::vector<double> grads = numbers(p.grad.sum());
      EXPECT_EQ(grads.front(), sum_along(mesh, p.spread.partial)) << p.name;
      const int first = mesh.place(Axis::tp) / 2 * 2 - mesh.place(Axis::tp);  // of two neighbours
      const double both = std::exp2(first) + std::exp2(first + 1);
      if (p.shared.ranks > 1) {
        EXPECT_EQ(grads.back(), both * grads.front());
      }
    }
  });
}

TEST(Axes, give_a_rank_that_keeps_a_part_of_states_the_same_sums) {
  on_each_mesh([](const ProcessMesh& mesh) {
    OneRank whole(mesh, false), cut(mesh, true);
    for (OneRank* rank : {&whole, &cut}) rank->reduce(std::exp2(mesh.world().rank()));
    for (const WeightBlock& block : cut.weights().blocks())
      for (const WeightSlot& slot : block.slots) {
        const double expected = sum_along(mesh, slot.parameter->spread.partial);
        for (const OwnedPart& own : block.owned)
          if (own.at <= slot.at && slot.at < own.at + own.count) {
            EXPECT_EQ(numbers(block.grads.slice(0, slot.at, 1)).front(), expected) << slot.parameter->name;
          }
      }
    EXPECT_EQ(global_norm(cut.weights(), Look::grads), global_norm(whole.weights(), Look::grads));
  });
}

TEST(Axes, count_every_element_of_the_model_once) {
  on_each_mesh([](const ProcessMesh& mesh) {
    const bool experts = mesh.layout().has(View::experts), shared = mesh.layout().degree(Axis::tp) == 4;
    const int elements = 5 + 6 + 24 + 24 + (experts ? 32 : 0) + (shared ? 36 : 0);
    for (const bool cut : {false, true}) {
      OneRank rank(mesh, cut);
      const int stages = mesh.layout().degree(Axis::pp);  // that all hold the like
      EXPECT_NEAR(global_norm(rank.weights(), Look::masters), std::sqrt(elements * stages), 1e-12);
      rank.reduce(0);
      const Tensor zeros = ops::zeros(rank.weights().device(), {norm_parts}, Dtype::f64);
      count_zeros_into(zeros, rank.weights());
      EXPECT_EQ(number(ops::sum(zeros)), elements * stages);
    }
  });
}

TEST(Axes, leave_every_box_to_one_rank_to_write) {
  for (const ParallelLayout::Degrees& degrees : meshes)
    for (const bool cut : {false, true}) {
      std::map<std::string, std::multiset<std::int64_t>> written;
      std::mutex mutex;
      const ParallelLayout layout(degrees);
      run_as_threads(layout.world(), [&](Communicator& world) {
        const ProcessMesh mesh(layout, world);
        OneRank rank(mesh, cut);
        const std::lock_guard lock(mutex);
        rank.weights().each_master([&](const Held& held) {
          for (const Piece& piece : held.pieces)
            for (std::int64_t i = 0; piece.where.replica == 0 && i < piece.where.local.elements(); ++i) {
              const Shape &local = piece.where.local, &offset = piece.where.offset;
              const std::int64_t row = local.rank() == 1 ? 0 : offset[0] + i / local[1];
              written[held.name].insert(row * piece.where.global[-1] + offset[-1] + i % local[-1]);
            }
        });
      });
      for (const auto& [name, elements] : written) {
        const auto stages = std::size_t(layout.degree(Axis::pp));
        EXPECT_EQ(elements.size(), stages * std::set(elements.begin(), elements.end()).size()) << name;
      }
      EXPECT_EQ(written.at("rows").size(), std::size_t(24 * layout.degree(Axis::pp)));
    }
}

// Three stages hold one table, two of them another; each name's gradients are added among those who hold it.
TEST(Ties, are_made_by_name_with_ranks_of_their_own) {
  run_as_threads(3, [](Communicator& world) {
    const ProcessMesh mesh(ParallelLayout({.pp = 3}), world);
    const auto device = open_device("cpu", {.threads = 1});
    std::vector<Parameter> here;
    here.push_back(whole_parameter("words", {4}, ones));
    if (world.rank() != 1) here.push_back(whole_parameter("positions", {4}, ones));
    if (world.rank() == 2) here.push_back(whole_parameter("words", {4}, ones));  // a second stage's copy
    for (Parameter& p : here) p.tied = true;
    Weights weights(
        [&](const VisitParameter& visit) {
          for (Parameter& p : here) visit(p);
        },
        *device, Dtype::f32, Weights::For::training, {.mesh = &mesh});
    for (const Parameter& p : here) ops::fill(p.grad.sum(), std::exp2(world.rank()));
    TiedWeights(weights).add_gradients();
    for (const Parameter& p : here)
      EXPECT_EQ(numbers(p.grad.sum()).back(), p.name == "words" ? 1 + 2 + 4 + 4 : 1 + 4) << p.name;
    EXPECT_EQ(here.front().pieces.front().where.replica, world.rank());
    if (world.rank() == 2) {
      EXPECT_EQ(here[1].pieces.front().where.replica, 1);
      EXPECT_EQ(here[2].pieces.front().where.replica, 3);
    }
    EXPECT_NEAR(global_norm(weights, Look::grads), std::sqrt(4 * 11 * 11 + 4 * 5 * 5), 1e-12);
  });
}

TEST(Axes, ask_for_a_mesh_where_a_part_is_held) {
  const auto device = open_device("cpu", {.threads = 1});
  Parameter rows = row_parameter("layers.0.rows", {8, 3}, ones, {Axis::tp, 0, 2});
  EXPECT_EQ(refused([&] {
              Weights([&](const VisitParameter& visit) { visit(rows); }, *device, Dtype::f32,
                      Weights::For::training);
            }),
            "layers.0.rows: a part of it is here, and no mesh says who holds the rest");
}

TEST(Axes, that_leave_one_out_are_refused_by_the_parameters_name) {
  const auto device = open_device("cpu", {.threads = 1});
  Parameter router = whole_parameter("layers.0.router", {4, 4}, ones);
  router.spread.copy = {};
  EXPECT_EQ(refused([&] {
              Weights([&](const VisitParameter& visit) { visit(router); }, *device, Dtype::f32,
                      Weights::For::training);
            }),
            "layers.0.router: its axes are cp, dp, pp, and those of its view are tp, cp, dp, pp");
}
