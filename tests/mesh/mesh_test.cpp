// Circles along axes, and what a parameter may say of them.
#include "weft/mesh/mesh.h"

#include <gtest/gtest.h>

#include "tests/support/refused.h"
#include "weft/comm/threads.h"
#include "weft/mesh/spread.h"

using namespace weft;

TEST(Mesh, has_the_circles_of_both_views) {
  const ParallelLayout layout({.tp = 2, .cp = 2, .dp = 2, .ep = 2, .etp = 2});
  run_as_threads(8, [&](Communicator& world) {
    const ProcessMesh mesh(layout, world);
    for (const Axes along : {Axes{Axis::tp}, Axes{Axis::dp, Axis::cp}, Axes{Axis::tp, Axis::cp, Axis::dp},
                             Axes{Axis::edp}, Axes{Axis::etp, Axis::ep}, Axes{Axis::etp, Axis::ep, Axis::pp}})
      EXPECT_EQ(mesh.along(along).rank(), mesh.place(along)) << names(along);
    EXPECT_EQ(mesh.along(Axis::edp).size(), 2);
    EXPECT_EQ(mesh.place(Axis::ep), world.rank() / 2 % 2);
  });
}

TEST(Mesh, cuts_an_axis_in_runs_of_neighbours) {
  run_as_threads(8, [](Communicator& world) {
    const ProcessMesh mesh(ParallelLayout({.tp = 4, .dp = 2}), world);
    Communicator& two = mesh.neighbours(Axis::tp, 2);
    EXPECT_EQ(two.size(), 2);
    EXPECT_EQ(two.rank(), world.rank() % 2);
    EXPECT_EQ(&mesh.neighbours(Axis::tp, 2), &two);
    Communicator& others = mesh.beyond(Axis::tp, 2);
    EXPECT_EQ(others.size(), 2);
    EXPECT_EQ(others.rank(), world.rank() % 4 / 2);
  });
}

TEST(Mesh, says_what_it_has_not) {
  run_as_threads(2, [](Communicator& world) {
    const ProcessMesh mesh(ParallelLayout({.tp = 2}), world);
    EXPECT_EQ(refused([&] {
                (void)mesh.along({Axis::cp, Axis::pp});
              }),
              "mesh: no circle was made along cp, pp");
    EXPECT_EQ(refused([&] { (void)mesh.neighbours(Axis::tp, 3); }),
              "mesh: 2 ranks along tp are no runs of 3");
  });
  EXPECT_EQ(refused([] {
              run_as_threads(2, [](Communicator& world) { ProcessMesh(ParallelLayout({.tp = 4}), world); });
            }),
            "mesh: the layout is for 4 ranks, 2 are here");
}

TEST(Spread, says_one_thing_of_every_axis_of_a_view) {
  const Spread whole = spread_in(View::dense);
  EXPECT_EQ(view_of(whole, "gain"), View::dense);
  EXPECT_EQ(whole.copy, Axes{Axis::tp});
  EXPECT_EQ(whole.with_terms(Axis::tp).partial, (Axes{Axis::tp, Axis::cp, Axis::dp}));
  EXPECT_EQ(whole.with_terms(Axis::tp).without_terms(Axis::tp), whole);
  EXPECT_EQ(spread_in(View::dense, Axis::tp).with_terms(Axis::tp), spread_in(View::dense, Axis::tp));
  const Spread expert = spread_in(View::experts, {Axis::ep, Axis::etp});
  EXPECT_EQ(view_of(expert, "up"), View::experts);
  EXPECT_EQ(expert.partial, Axes{Axis::edp});
  EXPECT_TRUE(expert.copy.empty());
}

TEST(Spread, of_a_wrong_axis_is_refused) {
  const auto said = [](const Spread& spread) {
    return refused([&] { (void)view_of(spread, "layers.0.x"); });
  };
  EXPECT_EQ(
      said({{Axis::tp, Axis::pp}, {Axis::cp, Axis::dp}, {Axis::tp}}),
      "layers.0.x: two things are said of tp; an axis cuts it, or its gradient is partial along it, or it "
      "is a copy");
  EXPECT_EQ(said({{Axis::pp}, {Axis::cp, Axis::dp}, {}}),
            "layers.0.x: its axes are cp, dp, pp, and those of its view are tp, cp, dp, pp");
  EXPECT_EQ(said({{Axis::tp, Axis::ep, Axis::pp}, {Axis::edp}, {}}),
            "layers.0.x: its axes are tp, ep, edp, pp, and those of its view are etp, ep, edp, pp");
  EXPECT_EQ(said({{Axis::tp}, {Axis::cp, Axis::dp}, {Axis::pp}}),
            "layers.0.x: pp does not cut it; what several stages hold is tied by name");
  EXPECT_EQ(said({{Axis::tp, Axis::pp}, {Axis::dp}, {Axis::cp}}),
            "layers.0.x: its gradient is not partial along cp, where ranks read other samples");
}
