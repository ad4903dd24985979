// Blocks, buckets, shares, and the boxes that a rank's share is made of.
#include "weft/optim/weights.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include "tests/support/tiny.h"
#include "weft/comm/threads.h"
#include "weft/model/gpt/gpt.h"
#include "weft/optim/rules.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Elements of every named tensor, each counted as often as replica 0 of it is said to be somewhere.
using Elements = std::map<std::string, std::multiset<std::int64_t>>;

void note(Elements& into, const Held& held) {
  for (const Piece& piece : held.pieces) {
    if (piece.where.replica > 0) continue;
    EXPECT_LE(piece.at + piece.where.local.elements(), held.memory.elements());
    const std::int64_t columns = piece.where.local[-1];
    for (std::int64_t i = 0; i < piece.where.local.elements(); ++i) {
      const std::int64_t column = piece.where.offset[-1] + i % columns;
      const std::int64_t row = piece.where.local.rank() == 1 ? 0 : piece.where.offset[0] + i / columns;
      into[held.name].insert(row * piece.where.global[-1] + column);
    }
  }
}

/// What all ranks together say they hold.
Elements held_by(int ranks, bool cut, Precision precision) {
  Elements out;
  std::mutex mutex;
  run_as_threads(ranks, [&](Communicator& world) {
    ModelConfig config = tiny_llama();
    config.precision = precision;
    const auto device = open_device("cpu", {.threads = 1});
    const ProcessMesh mesh(ParallelLayout({.dp = ranks}), world);
    const Stage stage =
        build_gpt(config, {.first_layer = 0, .layers = config.layers}, {.tp = mesh.along(Axis::tp)}, *device);
    Weights weights([&](const VisitParameter& visit) { stage.each_parameter(visit); }, *device,
                    TinyModel::dtype_for(precision), Weights::For::training,
                    {.mesh = &mesh, .cut = cut ? CutUp::states : CutUp::nothing, .bucket = 900});
    const auto adam = make_optimizer(weights, {});
    const std::lock_guard lock(mutex);
    weights.each_master([&](const Held& held) { note(out, held); });
    adam->each_state([&](const Held& held) { note(out, held); });
  });
  return out;
}

}  // namespace

TEST(HeldBoxes, make_every_tensor_once_however_states_are_cut) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const Elements alone = held_by(1, false, precision);
    EXPECT_EQ(alone.at("output.words.v").size(), std::size_t(29 * 16));
    EXPECT_EQ(alone.at("layers.1.mlp.up.weight").size(), std::size_t(48 * 16));
    for (const int ranks : {2, 3, 5})
      for (const bool cut : {false, true}) EXPECT_EQ(held_by(ranks, cut, precision), alone) << ranks;
  }
}

TEST(Buckets, are_filled_from_the_last_parameter_and_cover_the_block) {
  const auto device = open_device("cpu", {.threads = 1});
  SoloCommunicator solo;
  const ModelConfig config = tiny_gpt2();
  const Stage stage = build_gpt(config, {.first_layer = 0, .layers = config.layers}, {.tp = solo}, *device);
  const Weights weights([&](const VisitParameter& visit) { stage.each_parameter(visit); }, *device,
                        Dtype::f32, Weights::For::training, {.bucket = 900});
  for (const WeightBlock& block : weights.blocks()) {
    std::int64_t end = block.elements;
    int last = int(block.slots.size());
    for (const WeightBucket& bucket : block.buckets) {
      EXPECT_EQ(bucket.at + bucket.elements, end);
      EXPECT_EQ(bucket.first_slot + bucket.slots, last);
      EXPECT_TRUE(bucket.elements >= 900 || bucket.first_slot == 0);
      end = bucket.at;
      last = bucket.first_slot;
    }
    EXPECT_EQ(end, 0);
    EXPECT_EQ(last, 0);
  }
}

// A load fills masters and publishes: every rank then sees what each of them was given.
TEST(Masters, that_were_filled_by_their_owners_are_seen_by_all_after_publishing) {
  for (const Precision precision : {Precision::f32, Precision::bf16})
    run_as_threads(3, [&](Communicator& world) {
      ModelConfig config = tiny_gpt2();
      config.precision = precision;
      const auto device = open_device("cpu", {.threads = 1});
      const ProcessMesh mesh(ParallelLayout({.dp = 3}), world);
      const Stage stage = build_gpt(config, {.first_layer = 0, .layers = config.layers},
                                    {.tp = mesh.along(Axis::tp)}, *device);
      Weights weights([&](const VisitParameter& visit) { stage.each_parameter(visit); }, *device,
                      TinyModel::dtype_for(precision), Weights::For::training,
                      {.mesh = &mesh, .cut = CutUp::states});
      weights.each_master([](const Held& held) {
        for (const Piece& piece : held.pieces)
          for (std::int64_t i = 0; i < piece.where.local.elements(); ++i)
            held.memory.as<float>()[std::size_t(piece.at + i)] = 3;
      });
      weights.publish();
      stage.each_parameter([](Parameter& p) {
        const std::int64_t real = p.name == "embedding.words" ? 29 * 16 : p.value.elements();
        const auto seen = numbers(p.value);
        for (std::int64_t i = 0; i < real; ++i) ASSERT_EQ(seen[std::size_t(i)], 3) << p.name;
      });
    });
}
