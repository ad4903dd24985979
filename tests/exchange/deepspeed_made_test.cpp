// Steps of DeepSpeed's put together by hand: odd sizes, three ranks, and what is refused by its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/exchange/deepspeed_files.h"
#include "tests/exchange/hub.h"
#include "tests/support/temporary.h"
#include "weft/exchange/their_model.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;
using deepspeed::Checkpoint;
using support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

namespace fs = std::filesystem;

/// What a rank says that it has of a tensor, from a place in its buffer on.
std::string slice(int start, int count) {
  return name("deepspeed.utils.tensor_fragment", "fragment_address") + ")\x81" +
         dict({{"numel", number(count)}, {"start", number(start)}}) + "b";
}

std::string said_to(const MadeStep& step) {
  return refused([&] { (void)Checkpoint(deepspeed::Step{step.directory}); });
}

class MadeDeepSpeed : public ::testing::TestWithParam<bool> {
 protected:
  TemporaryDirectory folder_;
  MadeStep step_{folder_ / "global_step12", 3, GetParam()};
  std::string where_ = step_.directory.string();
};

/// The step is of stage 1.
class RefusedDeepSpeed : public ::testing::Test {
 protected:
  std::string said(const Said& of_model, const Said& of_first = {}) const {
    step_.write(of_model, of_first);
    return said_to(step_);
  }
  std::string said_beside(const std::string& file) const {
    step_.write();
    write_atomically(step_.directory / file, std::string_view("?"));
    return said_to(step_);
  }
  TemporaryDirectory folder_;
  MadeStep step_{folder_ / "global_step12"};
  std::string where_ = step_.directory.string(), model_ = step_.model().string(),
              first_ = step_.optimizer(0).string();
};

}  // namespace

TEST_P(MadeDeepSpeed, every_number_is_at_its_place) {
  step_.write();
  Checkpoint found(deepspeed::Step{step_.directory});
  EXPECT_THAT(found.weights().names(), ElementsAre("b", "k", "seen", "twice", "w"));
  EXPECT_THAT(numbers(found.weights(), "w"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(numbers(found.weights(), "k"), ElementsAre(5, 6, 7));
  EXPECT_THAT(numbers(found.weights(), "b"), ElementsAre(8, 9));
  EXPECT_THAT(numbers(found.weights(), "seen"), ElementsAre(77));
  EXPECT_THAT(numbers(found.first_moments(), "w"), ElementsAre(100, 101, 102, 103, 104));
  EXPECT_THAT(numbers(found.second_moments(), "b"), ElementsAre(208, 209));
  EXPECT_EQ(found.first_moments().find("seen"), nullptr);
  EXPECT_TRUE(found.weights().same("twice", "k"));
  EXPECT_FALSE(found.weights().same("b", "k"));
}

// Of b, the first two of three ranks have one number each, and the last one has none.
TEST(DeepSpeedMasters, may_lack_what_fills_buffers_up) {
  const TemporaryDirectory folder;
  const MadeStep step{.directory = folder / "global_step12", .ranks = 3, .stripped = true};
  step.write({}, {{"param_slice_mappings", list({dict({{"w", slice(0, 3)}}), dict({{"b", slice(0, 1)}})})}});
  Checkpoint found(deepspeed::Step{step.directory});
  EXPECT_THAT(numbers(found.weights(), "k"), ElementsAre(5, 6, 7));
  EXPECT_THAT(numbers(found.weights(), "b"), ElementsAre(8, 9));
  EXPECT_THAT(numbers(found.second_moments(), "b"), ElementsAre(208, 209));
}

TEST_P(MadeDeepSpeed, elements_are_read_by_any_step) {
  step_.write();
  Checkpoint found(deepspeed::Step{step_.directory});
  std::vector<float> some(3);
  found.weights().read("w", {0, 2, 3}, some.data());
  EXPECT_THAT(some, ElementsAre(0, 2, 4));
  some.resize(2);
  found.weights().read("w", {1, 3, 2}, some.data());
  EXPECT_THAT(some, ElementsAre(1, 4));
}

TEST_P(MadeDeepSpeed, the_run_is_that_of_its_files) {
  step_.write();
  Checkpoint found(deepspeed::Step{step_.directory});
  EXPECT_EQ(found.model().steps, 12);
  EXPECT_EQ(found.updates(), 11);
  EXPECT_EQ(found.model().samples, 96);
  EXPECT_EQ(found.model().batch, 8);
  EXPECT_EQ(found.model().clip, 2);
  ASSERT_EQ(found.groups().size(), 1U);
  EXPECT_EQ(found.groups()[0].rate, 0.5);
}

TEST_P(MadeDeepSpeed, every_ranks_file_is_needed) {
  step_.write();
  fs::remove(step_.optimizer(2));
  EXPECT_EQ(said_to(step_), where_ +
                                ": holds the *_optim_states.pt files of 2 data-parallel ranks out of 3: "
                                "copy those of the others there, too");
  fs::remove(step_.optimizer(0));
  EXPECT_EQ(said_to(step_),
            where_ + ": holds zero_pp_rank_1_mp_rank_00_optim_states.pt and lacks that of rank 0");
  step_.write();
  fs::copy_file(step_.optimizer(2), step_.optimizer(3));
  EXPECT_EQ(said_to(step_), where_ +
                                ": holds *_optim_states.pt files of 4 ranks, and their partition_count is "
                                "3: move away what is of another run");
  fs::remove(step_.optimizer(3));
  fs::copy_file(step_.optimizer(2), step_.directory / "bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt");
  EXPECT_EQ(said_to(step_), where_ +
                                ": bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt and "
                                "zero_pp_rank_2_mp_rank_00_optim_states.pt are both of rank 2: move away "
                                "what is of another run");
}

TEST_P(MadeDeepSpeed, buffers_hold_what_shapes_ask_for) {
  step_.write({{"param_shapes", list({dict({{"w", sizes({50})}}), dict({{"b", sizes({2})}})})}});
  EXPECT_EQ(said_to(step_),
            where_ + (GetParam() ? ": masters holds 4 numbers, and w would be 17 of them behind 0"
                                 : ": masters holds 9 numbers, and w would be 50 of them behind 0"));
  step_.write({{"param_shapes", list({dict({{"w", sizes({2})}}), dict({{"b", sizes({2})}})})}});
  EXPECT_EQ(said_to(step_), where_ + (GetParam() ? ": masters holds 4 numbers, and param_shapes ask for 2"
                                                 : ": masters holds 9 numbers, and param_shapes ask for 2"));
  step_.write({{"param_shapes", none}});
  EXPECT_EQ(said_to(step_), step_.model().string() + ": has no param_shapes, by which flat buffers are read");
}

INSTANTIATE_TEST_SUITE_P(Stages, MadeDeepSpeed, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "three" : "one"; });

TEST(DeepSpeedWithoutOptimizer, is_what_was_multiplied) {
  const TemporaryDirectory folder;
  const MadeStep step{folder / "global_step12", 0};
  step.write();
  Checkpoint found(deepspeed::Step{step.directory});
  EXPECT_THAT(numbers(found.weights(), "w"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_TRUE(found.first_moments().empty());
}

TEST_F(RefusedDeepSpeed, files_of_other_cuts_are_named) {
  const std::string advice =
      ", which weft does not read: save the model with transformers' save_pretrained and convert that";
  EXPECT_EQ(said_beside("layer_03-model_00-model_states.pt"),
            where_ + ": layer_03-model_00-model_states.pt is a layer of a PipelineModule" + advice);
  fs::remove(step_.directory / "layer_03-model_00-model_states.pt");
  for (const char* file :
       {"layer_0_expert_1_mp_rank_00_model_states.pt", "expp_rank_0_mp_rank_00_optim_states.pt"}) {
    EXPECT_EQ(said_beside(file), where_ + ": " + file + " is of experts that ranks share out" + advice);
    fs::remove(step_.directory / file);
  }
  const std::string ranks = "zero_pp_rank_0_mp_rank_01_optim_states.pt";
  EXPECT_EQ(said_beside(ranks), where_ + ": " + ranks +
                                    " is of a second tensor-parallel rank, and weft reads those of one: join "
                                    "them with DeepSpeed's ds_to_universal and convert what that writes");
  fs::remove(step_.directory / ranks);
  EXPECT_EQ(
      said_beside("offloaded_tensors"),
      where_ +
          ": offloaded_tensors holds what was offloaded to nvme, in a form that weft does not read: load it "
          "in DeepSpeed with \"offload_optimizer\" to the cpu, and save it again");
}

TEST_F(RefusedDeepSpeed, a_step_without_what_says_its_tensors) {
  step_.write();
  fs::remove(step_.model());
  EXPECT_EQ(said_to(step_),
            where_ +
                ": lacks mp_rank_00_model_states.pt or zero_pp_rank_0_mp_rank_00_model_states.pt, which say "
                "what tensors there are");
  Storages empty;
  const MadeStep bare{folder_ / "bare", 0, true};
  const std::string nothing = empty.flat({});
  write_saved(bare.model(), dict({{"module", dict({{"w", nothing}})}}), empty);
  EXPECT_EQ(said_to(bare),
            bare.directory.string() +
                ": lacks the zero_pp_rank_*_optim_states.pt files, in which ZeRO-3 keeps all weights");
}

TEST_F(RefusedDeepSpeed, what_was_not_trained) {
  EXPECT_EQ(said({{"frozen_param_shapes", dict({{"f", sizes({2})}, {"g", sizes({2})}})}}),
            model_ +
                ": its frozen_param_shapes hold 2 tensors that were not trained, and weft goes on with whole "
                "models: join what was trained with the rest (peft's merge_and_unload), save that with "
                "save_pretrained and convert it");
  EXPECT_THAT(said({{"frozen_param_fragments", dict({{"f", none}})}}),
              HasSubstr(": its frozen_param_fragments hold 1 tensors"));
  EXPECT_EQ(said({{"mp_world_size", number(2)}}),
            model_ +
                ": is of 2 tensor-parallel ranks, and weft reads those of one: join them with DeepSpeed's "
                "ds_to_universal and convert what that writes");
}

TEST_F(RefusedDeepSpeed, states_of_another_form) {
  EXPECT_EQ(
      said({}, {{"base_optimizer_state", list({none})}}),
      first_ +
          ": its base_optimizer_state is a list, as \"elastic_checkpoint\" writes it, which weft does not "
          "read: load it in DeepSpeed with that set to false, and save it again");
  EXPECT_EQ(said({}, {{"param_alignment_paddings", list({list({number(0), number(2)})})}}),
            first_ +
                ": its param_alignment_paddings are not all 0, and weft reads tensors that follow each other "
                "without gaps: join them with DeepSpeed's ds_to_universal and convert what that writes");
  EXPECT_EQ(
      said({}, {{"partition_count", list({number(3), number(1)})}}),
      first_ +
          ": its groups are cut over different numbers of ranks (partition_count), which weft does not read");
  EXPECT_EQ(
      said({}, {{"single_partition_of_fp32_groups", ""}}),
      first_ +
          ": has neither single_partition_of_fp32_groups (ZeRO-1, ZeRO-2) nor fp32_flat_groups (ZeRO-3): "
          "weft reads no other optimizer of DeepSpeed's");
  EXPECT_EQ(said({}, {{"single_partition_of_fp32_groups", list({none, none})}}),
            first_ + ": single_partition_of_fp32_groups of group 0 is None, expected a tensor");
  EXPECT_EQ(said({}, {{"single_partition_of_fp32_groups", list({none})}}),
            first_ + ": holds 1 groups of parameters, expected 2");
}

TEST_F(RefusedDeepSpeed, a_rank_that_says_that_it_has_something_else) {
  EXPECT_EQ(
      said({}, {{"param_slice_mappings", list({dict({{"w", slice(0, 3)}}), dict({{"b", slice(0, 1)}})})}}),
      "");
  EXPECT_EQ(
      said({}, {{"param_slice_mappings", list({dict({{"w", slice(1, 2)}}), dict({{"b", slice(0, 1)}})})}}),
      first_ + ": its param_slice_mappings have w elsewhere than from 0 to 3, where param_shapes have it");
}

TEST_F(RefusedDeepSpeed, values_of_another_kind) {
  EXPECT_EQ(said({{"module", ""}}), model_ + ": has no module");
  EXPECT_EQ(said({{"module", number(3)}}), model_ + ": its module is a whole number, expected a dict");
  EXPECT_EQ(said({{"module", dict({{"seen", none}})}}),
            model_ + ": its module holds None under a text, expected tensors by their names");
  EXPECT_EQ(said({{"param_shapes", number(3)}}),
            model_ + ": its param_shapes is a whole number, expected a list");
  EXPECT_EQ(said({{"param_shapes", list({none})}}),
            model_ + ": its param_shapes hold None, expected a dict for each group");
  EXPECT_EQ(said({{"param_shapes", list({dict({{"w", none}})})}}),
            model_ + ": w has None for a shape, expected a size");
  EXPECT_EQ(said({{"param_shapes", list({dict({{"w", tuple(none)}})})}}),
            model_ + ": w has None in its shape, expected whole numbers");
  EXPECT_EQ(said({{"param_shapes", list({dict({{"w", sizes({})}})})}}),
            model_ + ": w has 0 dimensions, expected 1 to 6");
  EXPECT_EQ(said({{"param_shapes", list({dict({{"w", sizes({2, 0})}})})}}),
            model_ + ": w is [2, 0], expected sizes from 1 on whose product fits 63 bits");
  EXPECT_EQ(said({{"param_shapes", list({dict({{"w", sizes({5})}}), dict({{"w", sizes({3})}})})}}),
            model_ + ": its param_shapes hold w twice");
  EXPECT_EQ(said({{"buffer_names", list({none})}}),
            model_ + ": its buffer_names has None for a name, expected a text");
  EXPECT_EQ(said({{"shared_params", dict({{"", word("k")}})}}),
            model_ + ": its shared_params has a name of 0 bytes that is empty, unprintable or too long");
  write_saved(step_.model(), number(3));
  EXPECT_EQ(said_to(step_), model_ + ": holds a whole number, expected a dict");
}

TEST_F(RefusedDeepSpeed, buffers_of_other_numbers) {
  Storages storages;
  const auto masters = [&](const std::string& first) {
    step_.write();
    const std::string group = list({first, storages.flat({8})});
    write_saved(step_.optimizer(0),
                dict({{"optimizer_state_dict",
                       dict({{"single_partition_of_fp32_groups", group}, {"partition_count", number(3)}})}}),
                storages);
    storages = {};
    return said_to(step_);
  };
  const std::string bytes = little(1.0F) + little(2.0F) + little(3.0F);
  EXPECT_EQ(masters(tensor(storage(storages.raw(bytes), 3, "IntStorage"), 0, number(3), number(1))),
            where_ + ": masters is of int32, expected float32, bfloat16 or float16");
  EXPECT_EQ(masters(tensor(storage(storages.raw(bytes), 3), 0, number(2), number(2))),
            where_ + ": masters has elements that do not lie next to each other, expected flat buffers");
  EXPECT_EQ(masters(tensor(storage(storages.raw(bytes), 6, "BFloat16Storage"), 0, number(3), number(1))),
            where_ + ": masters is of bf16 in one place and of f32 in another");
}

TEST(DeepSpeedWithoutOptimizer, needs_numbers_that_lie_next_to_each_other) {
  const TemporaryDirectory folder;
  const MadeStep step{folder / "global_step12", 0};
  Storages storages;
  const std::string every_other =
      tensor(storage(storages.raw(little(1.0F) + little(2.0F) + little(3.0F)), 3), 0, number(2), number(2));
  write_saved(step.model(), dict({{"module", dict({{"w", every_other}})}}), storages);
  EXPECT_EQ(said_to(step), step.model().string() + ": w has elements that do not lie next to each other");
}

TEST(DeepSpeedFound, by_its_root_or_its_step) {
  const fs::path golden = hub_model("deepspeed") / "zero1_gpt2";
  EXPECT_EQ(deepspeed::find_step(golden)->directory.filename(), "global_step4");
  EXPECT_FALSE(deepspeed::find_step(golden)->universal);
  EXPECT_TRUE(deepspeed::find_step(golden / "global_step4_universal")->universal);
  EXPECT_EQ(program_of(golden / "global_step4"), Program::deepspeed);
  const TemporaryDirectory folder;
  fs::copy(golden / "global_step4_universal", folder / "u", fs::copy_options::recursive);
  write_atomically(folder / "latest_universal", std::string_view("u"));
  EXPECT_TRUE(deepspeed::find_step(folder.path())->universal);
  EXPECT_FALSE(deepspeed::find_step(folder / "nothing"));
}

TEST(DeepSpeedFound, refuses_a_root_that_names_what_is_not_there) {
  const TemporaryDirectory folder;
  const fs::path latest = folder / "latest";
  const auto said = [&] { return refused([&] { (void)program_of(folder.path()); }); };
  write_atomically(latest, std::string_view("global_step8\n"));
  EXPECT_EQ(said(), latest.string() + ": names global_step8, which is not there");
  fs::create_directory(folder / "global_step8");
  EXPECT_EQ(said(), latest.string() + ": names global_step8, which holds no file of DeepSpeed's");
  write_atomically(latest, std::string_view("../other"));
  EXPECT_EQ(said(),
            latest.string() + ": says 8 bytes that are no directory's name, expected one as global_step500");
  fs::remove(latest);
  EXPECT_EQ(said(), "");
  MadeStep{folder / "global_step8"}.write();
  EXPECT_EQ(said(),
            folder.path().string() +
                ": holds global_step8 and no file latest, which says what step is meant: name the step's "
                "own directory");
}

TEST(DeepSpeedFound, is_a_hugging_face_model_once_its_own_files_are_gone) {
  const TemporaryDirectory folder;
  fs::copy(hub_model("gpt2"), folder.path());
  write_atomically(folder / "latest", std::string_view("global_step8"));
  EXPECT_EQ(program_of(folder.path()), Program::hugging_face);
}

TEST(DeepSpeedConfig, is_looked_for_near_the_step) {
  const TemporaryDirectory folder;
  const fs::path step = folder / "run" / "global_step4",
                 config = hub_model("deepspeed/zero1_gpt2") / "config.json";
  fs::create_directories(step.parent_path());
  fs::copy(hub_model("deepspeed/zero1_gpt2") / "global_step4", step);
  const auto said = [&](const fs::path& given = {}) {
    return refused([&] { (void)read_theirs(step, {.config = given}); });
  };
  EXPECT_EQ(
      said(),
      step.string() +
          ": has no config.json in it or above it, which says what the model is: copy that of its "
          "Hugging Face model there, or let weft checkpoint convert read it elsewhere (its option config)");
  EXPECT_EQ(said(folder / "nowhere"), (folder / "nowhere").string() + ": is no config.json and holds none");
  EXPECT_EQ(said(config), "");
  EXPECT_EQ(said(config.parent_path()), "");
  for (const fs::path& place : {folder.path(), folder / "run", step}) {
    fs::copy_file(config, place / "config.json");
    EXPECT_EQ(said(), "");
    fs::remove(place / "config.json");
  }
}

TEST(DeepSpeedUniversalMade, needs_every_master) {
  const TemporaryDirectory folder;
  const fs::path step = folder / "u", zero = step / "zero";
  fs::copy(hub_model("deepspeed/zero3_llama") / "global_step4_universal", step, fs::copy_options::recursive);
  const auto said = [&] { return refused([&] { (void)Checkpoint(deepspeed::Step{step, true}); }); };
  EXPECT_EQ(said(), "");
  fs::remove(zero / "model.norm.weight" / "fp32.pt");
  EXPECT_EQ(said(), zero.string() + ": lacks model.norm.weight/fp32.pt");
  write_saved(zero / "model.norm.weight" / "fp32.pt", dict({{"other", none}}));
  EXPECT_EQ(said(), (zero / "model.norm.weight" / "fp32.pt").string() + ": holds no tensor param");
  fs::create_directory(zero / "a\nb");
  EXPECT_EQ(said(), zero.string() + ": holds a folder whose name of 3 bytes is unprintable or too long");
}
