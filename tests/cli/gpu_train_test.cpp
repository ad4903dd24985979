// weft train on the emulated GPU: losses are the processor's, and checkpoints move from one to the other.
#include <gmock/gmock.h>

#include "tests/cli/gpu_trained.h"
#include "weft/cli/gpu_run.h"

using namespace weft;
using namespace weft::cli;
using support::TemporaryDirectory;

namespace {

/// Losses are near 4: this is forty steps of f32 for them, over three steps whose sums have another order.
constexpr double rounding = 2e-5;
/// Every product and every activation is rounded to eight bits, at other places in other kernels: layouts
/// part by up to 5.5e-3 on the processor alone (tests/equal/run.h).
constexpr double rounding_of_bf16 = 1e-2;

void expect_the_processors(const Words& words, const Words& more, double within = rounding) {
  const Training expected = trained(words, more, "cpu"), run = trained(words, more, "cuda");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(parted(run, expected, within), "");
  EXPECT_EQ(run.losses.size(), 3U);
  EXPECT_EQ(found(), "");
}

}  // namespace

TEST(GpuTraining, gives_the_processors_losses_in_f32_and_in_bf16) {
  expect_the_processors(tiny_words(), {});
  expect_the_processors(tiny_words(), {"--bf16"}, rounding_of_bf16);
}

// Attention by tiles: heads of 64 in half precision, keys that heads share, turned and normalized.
TEST(GpuTraining, gives_them_where_attention_runs_by_tiles) {
  const Words llama{"--bf16",
                    "--kv-channels",
                    "64",
                    "--group-query-attention",
                    "--num-query-groups",
                    "1",
                    "--swiglu",
                    "--disable-bias-linear",
                    "--normalization",
                    "RMSNorm",
                    "--qk-layernorm",
                    "--position-embedding-type",
                    "rope",
                    "--untie-embeddings-and-output-weights"};
  expect_the_processors(tiny_words(), llama, rounding_of_bf16);
}

TEST(GpuTraining, gives_them_for_experts_for_a_bert_and_for_a_t5) {
  expect_the_processors(tiny_words(), {"--num-experts", "4", "--moe-router-topk", "2", "--moe-aux-loss-coeff",
                                       "0.01", "--disable-bias-linear"});
  expect_the_processors(
      tiny_words(), {"--num-experts", "4", "--moe-router-topk", "2", "--moe-router-dtype", "fp64",
                     "--moe-aux-loss-coeff", "0.01", "--moe-z-loss-coeff", "0.01", "--disable-bias-linear"});
  expect_the_processors(tiny_words("bert"), {});
  expect_the_processors(tiny_words("t5"), {"--decoder-seq-length", "8"});
}

namespace {

/// Two ranks of every kind, whose losses are the processor's; they say that they speak so.
void expect_the_processors_on_two_ranks(const std::string& way) {
  for (const Words& layout : {Words{"--tensor-model-parallel-size", "2", "--sequence-parallel"},
                              {"--pipeline-model-parallel-size", "2"},
                              {"--context-parallel-size", "2"},
                              {"--use-distributed-optimizer", "--micro-batch-size", "1"}}) {
    SCOPED_TRACE(layout.front());
    Words more = layout;
    more.insert(more.end(), {"--ranks", "2"});
    expect_the_processors(tiny_words(), more);
    more.insert(more.end(), {"--train-iters", "1"});
    EXPECT_THAT(trained(tiny_words(), more, "cuda").err, ::testing::HasSubstr(way));
  }
}

}  // namespace

// Ranks are threads, which speak through the host: each would read memory of its own device alone.
TEST(GpuTraining, gives_them_on_two_ranks_of_one_gpu) {
  expect_the_processors_on_two_ranks("ranks speak through the host: ranks 0 and 1 share ");
}

TEST(GpuTraining, gives_them_on_two_gpus) {
  const Machine two({.count = 2});
  expect_the_processors_on_two_ranks("ranks speak from GPU to GPU by NCCL 2.28.0");
  const Words mixture{"--num-experts",
                      "4",
                      "--moe-router-topk",
                      "2",
                      "--disable-bias-linear",
                      "--expert-model-parallel-size",
                      "2",
                      "--ranks",
                      "2",
                      "--micro-batch-size",
                      "1"};
  expect_the_processors(tiny_words(), mixture);
  // Activations and gradients go the same way at once.
  expect_the_processors(tiny_words(), {"--num-layers", "4", "--pipeline-model-parallel-size", "2",
                                       "--pipeline-schedule", "zb-v", "--ranks", "2"});
  expect_the_processors(tiny_words(), {"--bf16", "--tensor-model-parallel-size", "2", "--ranks", "2"},
                        rounding_of_bf16);
}

// NCCL's streams follow lists and hold them: the bits of launches one by one.
TEST(GpuTraining, gives_the_same_bits_by_graphs_on_two_gpus) {
  const Machine two({.count = 2});
  for (const Words& layout : {Words{"--tensor-model-parallel-size", "2", "--sequence-parallel"},
                              {"--pipeline-model-parallel-size", "2", "--micro-batch-size", "1"},
                              {"--use-distributed-optimizer", "--micro-batch-size", "1"}}) {
    SCOPED_TRACE(layout.front());
    Words more = layout;
    more.insert(more.end(), {"--ranks", "2", "--train-iters", "6"});
    const Training expected = trained(tiny_words(), more, "cuda");
    more.insert(more.end(), {"--cuda-graph-impl", "local"});
    const Training by_graphs = trained(tiny_words(), more, "cuda");
    EXPECT_EQ(by_graphs.losses.size(), 6U) << by_graphs.err;
    EXPECT_EQ(by_graphs.losses, expected.losses);
    EXPECT_THAT(by_graphs.err, ::testing::HasSubstr("ranks speak from GPU to GPU by NCCL"));
    EXPECT_EQ(found(), "");
  }
}

// Rank 1 takes the first microbatch down to the end before it looks at the second one.
TEST(GpuTraining, refuses_a_schedule_whose_letters_overtake_one_another) {
  const Machine two({.count = 2});
  const TemporaryDirectory folder;
  const std::string file = (folder / "mine.txt").string();
  std::ofstream(file) << "stages 0 1 0 1\n"
                         "rank 0: F0@0 F1@0 F0@2 F1@2 B0@2 B1@2 B0@0 B1@0\n"
                         "rank 1: F0@1 F0@3 B0@3 F1@1 F1@3 B1@3 B0@1 B1@1\n";
  const Words words{"--num-layers",
                    "4",
                    "--pipeline-model-parallel-size",
                    "2",
                    "--pipeline-schedule",
                    file,
                    "--num-virtual-stages-per-pipeline-rank",
                    "2",
                    "--ranks",
                    "2"};
  EXPECT_THAT(
      trained(tiny_words(), words, "cuda").err,
      ::testing::HasSubstr(
          "NCCL hands activations, and gradients, over in the order in which they were sent, and rank "
          "0 sends rank 1 the activation of microbatch 1 for stage 1, which reads the activation of "
          "microbatch 0 for stage 3 first"));
}

TEST(GpuTraining, says_where_there_is_no_nccl) {
  const Machine two({.count = 2, .nccl = false});
  EXPECT_THAT(
      trained(tiny_words(), {"--ranks", "2", "--micro-batch-size", "1", "--train-iters", "1"}, "cuda").err,
      ::testing::HasSubstr("ranks speak through the host: on rank 0 libnccl.so.2 is not to be found"));
}

// Launches that come again are one call, by whichever of Megatron's words, and a processor has none.
TEST(GpuTraining, asks_for_less_by_graphs_and_gives_the_same_bits) {
  const auto asked = [](const Words& more, std::map<int, double>* losses) {
    Words words{"--train-iters", "6", "--bf16"};
    words.insert(words.end(), more.begin(), more.end());
    const std::uint64_t before = emulated::meter().asked;
    *losses = trained(tiny_words(), words, "cuda").losses;
    return emulated::meter().asked - before;
  };
  std::map<int, double> expected, losses;
  const std::uint64_t most = asked({"--cuda-graph-impl", "none"}, &expected);
  EXPECT_EQ(asked({}, &losses), most);
  for (const Words& words :
       {Words{"--cuda-graph-impl", "local"}, {"--enable-cuda-graph"}, {"--external-cuda-graph"}}) {
    EXPECT_LT(asked(words, &losses), most * 3 / 4) << words.front();
    EXPECT_EQ(losses, expected);
  }
  EXPECT_EQ(found(), "");
  EXPECT_THAT(trained(tiny_words(), {"--cuda-graph-impl", "local"}, "cpu").err,
              ::testing::HasSubstr(
                  "no effect here: --cuda-graph-impl (a processor is asked for nothing that it could keep)"));
}

TEST(GpuTraining, shows_a_profiler_the_steps_that_are_named) {
  using ::testing::HasSubstr;
  const auto shown = [](const char* after, const char* last, const Words& more = {}) {
    Words words{"--profile", "--profile-step-start", after, "--profile-step-end", last};
    words.insert(words.end(), more.begin(), more.end());
    const auto windows = emulated::meter().windows, launches = emulated::meter().in_windows;
    const Training run = trained(tiny_words(), words, "cuda");
    EXPECT_EQ(run.losses.size(), 3U) << run.err;
    EXPECT_FALSE(emulated::meter().profiled);
    return std::pair(emulated::meter().windows - windows, emulated::meter().in_windows - launches);
  };
  const auto [windows, launches] = shown("1", "2");
  EXPECT_EQ(windows, 1U);
  EXPECT_GT(launches, 0U);
  EXPECT_EQ(shown("1", "3"), std::pair(windows, 2 * launches));
  EXPECT_EQ(shown("1", "9"), std::pair(windows, 2 * launches));  // as many as there are
  EXPECT_EQ(shown("7", "9").first, 0U);
  const Words two{"--ranks", "2", "--micro-batch-size", "1", "--profile-ranks"};
  const auto on_ranks = [&](const char* rank) {
    Words words = two;
    words.emplace_back(rank);
    return shown("0", "1", words).first;
  };
  EXPECT_EQ(on_ranks("1"), 1U);
  const auto said = [](Words words, const char* device = "cuda") {
    words.emplace_back("--profile");
    return trained(tiny_words(), words, device).err;
  };
  EXPECT_THAT(said({"--profile-step-start", "7", "--profile-step-end", "9"}),
              HasSubstr("a profiler is shown nothing: steps 8 to 9 are none of this run, which has 1 to 3"));
  EXPECT_EQ(
      said({"--profile-step-end", "10"}),
      "--profile-step-end 10 is not behind --profile-step-start 10: a profiler would be shown no step\n");
  EXPECT_EQ(said({"--profile-ranks", "0", "3"}),
            "--profile-ranks 3: ranks are counted from 0, and the last is 0\n");
  EXPECT_THAT(
      said({}, "cpu"),
      HasSubstr("no effect here: --profile (a processor's profilers look when they are told to: perf"));
}

TEST(GpuTraining, names_what_a_profiler_sees) {
  using ::testing::Contains;
  const auto names_of = [](const Words& more, const std::string& family = "gpt") {
    (void)emulated::take_names();
    Words words{"--profile", "--profile-step-start", "1", "--profile-step-end", "2"};
    words.insert(words.end(), more.begin(), more.end());
    const Training run = trained(tiny_words(family), words, "cuda");
    EXPECT_EQ(run.losses.size(), 3U) << run.err;
    return emulated::take_names();
  };
  EXPECT_THAT(names_of({}), ::testing::IsEmpty());
  const std::string forward = "step 2 > forward-backward > forward 1",
                    backward = "step 2 > forward-backward > backward 1";
  const std::vector<std::string> names = names_of({"--nvtx-ranges"});
  for (const std::string& name :
       {std::string("step 2"), forward, forward + " > embedding", forward + " > attention block 1",
        forward + " > mlp block 1", forward + " > output and loss", backward + " > mlp block 1",
        backward + " > attention block 0", backward + " > embedding", std::string("step 2 > all-grads-sync"),
        std::string("step 2 > optimizer-clip-main-grad"), std::string("step 2 > optimizer-inner-step")})
    EXPECT_THAT(names, Contains(name));
  for (const std::string& name : names) EXPECT_TRUE(name.starts_with("step 2")) << name;
  EXPECT_THAT(names_of({"--nvtx-ranges", "--recompute-granularity", "full"}),
              Contains(backward + " > recompute > mlp block 1"));
  EXPECT_THAT(names_of({"--nvtx-ranges", "--num-experts", "2", "--moe-ffn-hidden-size", "64"}),
              Contains(forward + " > experts block 1"));
  EXPECT_EQ(found(), "");
}

TEST(GpuTraining, knows_where_scales_of_blocks_make_nothing_faster) {
  ModelConfig m;
  EXPECT_EQ(why_blocks_are_widened("cuda", m), "");
  m.fp8 = {.format = Fp8Format::e4m3, .recipe = Fp8Recipe::blockwise};
  EXPECT_EQ(why_blocks_are_widened("cpu", m), "");
  EXPECT_EQ(
      why_blocks_are_widened("cuda", m),
      "GPUs of compute capability 9.0 multiply under such scales; this one has 8.0, and multiplies what "
      "codes stand for, in bf16");
  const emulated::CardsHere nine({.capability = 9});
  EXPECT_EQ(why_blocks_are_widened("cuda", m), "");
  m.fp8.recipe = Fp8Recipe::mxfp8;
  EXPECT_EQ(why_blocks_are_widened("cuda", m),
            "GPUs of compute capability 10 multiply under such scales; this one has 9.0, and multiplies what "
            "codes stand for, in bf16");
}

// Heads of 64: other sums, near by, where the GPU has them; and a sentence where not.
TEST(GpuTraining, multiplies_by_warpgroups_where_they_are) {
  using ::testing::HasSubstr;
  const auto run = [](Words words, const Words& more, const char* device) {
    words.insert(words.end(), more.begin(), more.end());
    return trained(tiny_words(), words, device);
  };
  const Words half{"--bf16", "--kv-channels", "64"};
  const auto said = [&](const Words& words, const char* device) {
    return run(words, {"--by-warpgroups", "--train-iters", "1"}, device).err;
  };
  EXPECT_THAT(said(half, "cpu"), HasSubstr("no effect here: --by-warpgroups (a processor has none)"));
  EXPECT_THAT(said(half, "cuda"),
              HasSubstr("(GPUs of compute capability 9.0 have them, by a program that was"));
  const emulated::CardsHere nine({.capability = 9});
  EXPECT_THAT(said({"--kv-channels", "64"}, "cuda"), HasSubstr("(what is computed in fp32 goes by warps)"));
  EXPECT_THAT(said({"--bf16", "--kv-channels", "136"}, "cuda"),
              HasSubstr("(attention of heads of 136 goes by warps)"));
  const std::uint64_t before = emulated::meter().products;
  const Training by_warps = run(half, {}, "cuda");
  EXPECT_EQ(emulated::meter().products, before);
  const Training by_warpgroups = run(half, {"--by-warpgroups"}, "cuda");
  EXPECT_GT(emulated::meter().products, before);
  EXPECT_THAT(by_warpgroups.err, ::testing::Not(HasSubstr("no effect here")));
  EXPECT_EQ(parted(by_warpgroups, by_warps, rounding_of_bf16), "");
  EXPECT_EQ(found(), "");
}

// With its feed, its log and its learning rate: the GPU is idle from such a wait until it is asked for more.
TEST(GpuTraining, waits_for_the_gpu_once_a_step) {
  const auto waits = [](const char* steps) {
    emulated::set_pace(emulated::lazy);
    const std::uint64_t before = emulated::meter().host_waits;
    EXPECT_EQ(trained(tiny_words(), {"--exit-interval", steps}, "cuda").status, 3);
    return emulated::meter().host_waits - before;
  };
  const std::uint64_t one = waits("1");
  EXPECT_EQ(waits("2") - one, 1U);
}

TEST(GpuTraining, goes_on_from_its_own_checkpoint_bit_for_bit) {
  const TemporaryDirectory folder;
  const Words saves{"--save", (folder / "ck").string(), "--save-interval", "2"};
  Words stops = saves, goes_on = saves;
  stops.insert(stops.end(), {"--exit-interval", "2"});
  goes_on.insert(goes_on.end(), {"--load", (folder / "ck").string()});
  const Training whole = trained(tiny_words(), {}, "cuda");
  const Training first = trained(tiny_words(), stops, "cuda"),
                 second = trained(tiny_words(), goes_on, "cuda");
  ASSERT_EQ(first.losses.size(), 2U) << first.err;
  ASSERT_EQ(second.losses.size(), 1U) << second.err;
  EXPECT_EQ(first.losses.at(2), whole.losses.at(2));
  EXPECT_EQ(second.losses.at(3), whole.losses.at(3));
  EXPECT_EQ(found(), "");
}

TEST(GpuTraining, goes_on_from_the_processors_checkpoint_and_the_processor_from_its) {
  const Training expected = trained(tiny_words(), {}, "cpu");
  for (const auto& [from, to] : {std::pair("cpu", "cuda:0"), std::pair("cuda", "cpu")}) {
    const TemporaryDirectory folder;
    const std::string at = (folder / "ck").string();
    const Training first = trained(
        tiny_words(), {"--save", at, "--save-interval", "2", "--exit-interval", "2", "--async-save"}, from);
    ASSERT_EQ(first.losses.size(), 2U) << first.err;
    Training second = trained(tiny_words(), {"--load", at}, to);
    second.losses.insert(first.losses.begin(), first.losses.end());
    EXPECT_EQ(parted(second, expected, rounding), "") << from;
  }
  EXPECT_EQ(found(), "");
}
