#include "weft/cli/dialect/deepspeed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/deepspeed_said.h"
#include "tests/support/source_dir.h"
#include "tests/support/temporary.h"
#include "weft/train/schedules.h"

using namespace weft;
using namespace weft::cli;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

namespace {

class DeepSpeed : public ::testing::Test {
 protected:
  std::unique_ptr<Command> read(const std::string& json, std::vector<std::string> flags) const {
    std::ofstream(file_) << json;
    std::vector<std::string> words = std::move(flags);
    words.insert(words.end(), {"--deepspeed", "--deepspeed_config", file_});
    return read_command(std::vector<std::string_view>(words.begin(), words.end()));
  }
  std::string refused(const std::string& json, std::vector<std::string> flags) const {
    try {
      static_cast<void>(read(json, std::move(flags)));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  std::string settled(const std::string& json, std::vector<std::string> flags, int world) const {
    const auto command = read(json, std::move(flags));
    try {
      settle_by_ranks(*command, world);
    } catch (const Error& e) {
      return e.what();
    }
    const TrainConfig& c = command->config;
    return text(c.batch.micro, " of ", c.batch.global, ", groups ", c.parallel.shard_groups);
  }
  support::TemporaryDirectory folder_;
  const std::string file_ = (folder_.path() / "ds.json").string();
};

}  // namespace

TEST(DeepSpeedFile, names_what_is_no_key_and_the_nearest) {
  EXPECT_EQ(refusal(R"({"train_bach_size": 8})"),
            "ds.json: train_bach_size is no key of DeepSpeed's, did you mean train_batch_size");
  EXPECT_EQ(refusal(R"({"zero_optimization": {"stge": 8}})"),
            "ds.json: zero_optimization.stge is no key of DeepSpeed's, did you mean zero_optimization.stage");
  EXPECT_EQ(refusal(R"({"zero_optimisation": {"stage": 1}})"),
            "ds.json: zero_optimisation is no key of DeepSpeed's, did you mean zero_optimization");
  EXPECT_EQ(refusal(R"({"qqqqqqqq": 1})"), "ds.json: qqqqqqqq is no key of DeepSpeed's");
}

TEST(DeepSpeedFile, says_where_it_is_no_configuration) {
  EXPECT_EQ(refusal("["), "ds.json is not JSON: line 1");
  EXPECT_EQ(refusal("{\n\"a\": NaN}"), "ds.json is not JSON: line 2");
  EXPECT_EQ(refusal("[]"), "ds.json is not a JSON object");
  EXPECT_EQ(refusal(R"({"seed": 1e999})"), "ds.json holds a number that is too large");
  EXPECT_EQ(refusal(R"({"seed": 18446744073709551615})"),
            "ds.json: seed is 18446744073709551615, not a whole number");
  EXPECT_EQ(refusal(R"({"seed": 1, "seed": 2})"), "ds.json says seed twice in one group");
  EXPECT_EQ(refusal(std::string(50, '[')), "ds.json has more than 12 groups in each other");
  EXPECT_EQ(refusal(R"({"fp16": true})"), "ds.json: fp16 is true, not a group of keys");
  EXPECT_EQ(refusal(R"({"fp16": {"enabled": "yes"}})"),
            "ds.json: fp16.enabled is \"yes\", not true or false");
  EXPECT_EQ(refusal(R"({"train_batch_size": 2.5})"), "ds.json: train_batch_size is 2.5, not a whole number");
  EXPECT_EQ(refusal(R"({"train_batch_size": 0})"),
            "ds.json: train_batch_size: '0' is not a whole number from 1 to 2147483647");
}

TEST(DeepSpeedFile, may_hold_comments_and_leave_keys_to_flags) {
  const Said now = said("{ // as hjson\n\"train_batch_size\": \"auto\", \"scheduler\": null, \"seed\": 5}");
  EXPECT_THAT(now.fields.at("run.seed"), ElementsAre("5"));
  EXPECT_THAT(now.fields.at("batch.global"), ElementsAre("0"));
}

TEST(DeepSpeedFile, refuses_all_that_weft_cannot_do_at_once) {
  EXPECT_EQ(
      refusal(R"({"zero_optimization": {"zeropp_loco_param": {"err_beta": 0.8}},
      "eigenvalue": {"enabled": true, "tol": 0.5}, "amp": {"enabled": true}})"),
      "ds.json: weft cannot do this yet: Apex's mixed precision; bf16 and fp16 are weft's own: amp.enabled; "
      "eigenvalues of layers: eigenvalue.enabled, eigenvalue.tol 0.5; "
      "what int4 leaves out of a gradient is not added to the next: zero_optimization.zeropp_loco_param");
}

TEST(DeepSpeedFile, says_what_gradients_are_kept_in) {
  EXPECT_THAT(said(R"({"data_types": {"grad_accum_dtype": "bf16"}})").fields.at("scaling.sum_in_bf16"),
              ElementsAre("true"));
  EXPECT_THAT(said(R"({"data_types": {"grad_accum_dtype": "fp32"}})").fields.at("scaling.sum_in_bf16"),
              ElementsAre("false"));
  EXPECT_EQ(refusal(R"({"data_types": {"grad_accum_dtype": "fp16"}})"),
            "ds.json: data_types.grad_accum_dtype fp16: gradients are kept in fp32, or in bf16");
  EXPECT_EQ(
      refusal(R"({"data_types": {"grad_accum_dtype": "bf16"}, "communication_data_type": "fp32"})"),
      "ds.json: communication_data_type fp32: what data_types.grad_accum_dtype keeps in bf16 travels so; "
      "leave it out");
}

TEST(DeepSpeedFile, passes_over_blocks_that_are_switched_off) {
  const Said now =
      said(R"({"curriculum_learning": {"enabled": false, "min_difficulty": 64}, "fp16": {"enabled": false,
      "loss_scale_window": 7}, "data_efficiency": {"enabled": false, "data_sampling": {"enabled": true, "num_epochs": 1}}})");
  EXPECT_THAT(now.fields.at("scaling.window"), ElementsAre("1000"));
  EXPECT_THAT(now.rest.notices, IsEmpty());
  EXPECT_THAT(refusal(R"({"curriculum_learning": {"enabled": false, "min_dificulty": 64}})"),
              HasSubstr("did you mean curriculum_learning.min_difficulty"));
}

TEST(DeepSpeedFile, is_read_as_published_job_files_bring_it) {
  const Said now =
      said(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 16, "steps_per_print": 10,
    "zero_optimization": {"stage": 0, "elastic_checkpoint": true}, "gradient_clipping": 1.0, "prescale_gradients": true,
    "fp16": {"enabled": true, "loss_scale": 0, "loss_scale_window": 500, "hysteresis": 2, "min_loss_scale": 1,
    "initial_scale_power": 11}, "wall_clock_breakdown" : false})");
  EXPECT_THAT(now.fields.at("model.precision"), ElementsAre("f16"));
  EXPECT_THAT(now.fields.at("scaling.initial"), ElementsAre("2048"));
  EXPECT_THAT(now.fields.at("scaling.constant"), IsEmpty());
  EXPECT_THAT(now.fields.at("log.timing_level"), ElementsAre("0"));
  EXPECT_THAT(now.fields.at("log.engine_interval"), ElementsAre("10"));
  EXPECT_THAT(now.rest.notices,
              ElementsAre(HasSubstr("prescale_gradients"), HasSubstr("elastic_checkpoint")));
}

TEST(DeepSpeedFile, takes_what_its_optimizer_would_where_nothing_is_said) {
  const Said muon = said(R"({"optimizer": {"type": "muon", "params": {"lr": 0.02}}})");
  EXPECT_THAT(muon.fields.at("optimizer.muon.momentum"), ElementsAre("0.95"));
  EXPECT_THAT(muon.fields.at("optimizer.weight_decay"), ElementsAre("0"));
  const Said lion = said(R"({"optimizer": {"type": "Lion", "params": {"betas": [0.8, 0.9]}}})");
  EXPECT_THAT(lion.fields.at("optimizer.lion.beta2"), ElementsAre("0.9"));
  const Said bare = said(R"({"optimizer": {"type": "Lion"}})");
  EXPECT_THAT(bare.fields.at("optimizer.lion.beta1"), ElementsAre("0.9"));
  EXPECT_THAT(bare.fields.at("optimizer.lion.beta2"), ElementsAre("0.99"));
  EXPECT_EQ(refusal(R"({"optimizer": {"type": "Adagrad"}})"),
            "ds.json: optimizer.type Adagrad: weft has Adam, AdamW, SGD, Lamb, Lion, Muon, OneBitAdam, "
            "ZeroOneAdam and "
            "OneBitLamb");
  EXPECT_EQ(refusal(R"({"optimizer": {"type": "Lion", "params": {"eps": 0.1}}})"),
            "ds.json: optimizer.params.eps 0.1: lion has no such parameter here: leave it out");
  EXPECT_EQ(
      refusal(R"({"optimizer": {"type": "Adam", "params": {"bias_correction": false}}})"),
      "ds.json: optimizer.params.bias_correction false: adam has no such parameter here: only true is fine");
  EXPECT_EQ(refusal(R"({"optimizer": {"params": {"lr": 0.1}}})"),
            "ds.json: optimizer.params.lr needs optimizer.type: which optimizer it is for");
  EXPECT_EQ(refusal(R"({"optimizer": {"type": "Adam", "params": {"betas": [0.1]}}})"),
            "ds.json: optimizer.params.betas is [0.1], not two numbers");
  EXPECT_EQ(
      refusal(R"({"optimizer": {"type": "Adam", "params": {"nesterov": false, "bias_correction": true}}})"),
      "");
}

TEST(DeepSpeedFile, gives_the_rates_of_deepspeeds_schedules) {
  std::ifstream in(WEFT_SOURCE_DIR "/tests/golden/optim/deepspeed_rates.json");
  const Json golden = Json::parse(in);
  for (const Json& one : golden.at("schedules")) {
    Json file{{"scheduler", {{"type", one.at("type")}, {"params", one.at("params")}}}};
    if (one.at("type") == "WarmupCosineLR")
      file["optimizer"] = {{"type", "Adam"}, {"params", {{"lr", one.at("lr")}}}};
    TrainConfig config;
    Fields fields(config);
    static_cast<void>(dialect::read_deepspeed(fields, file.dump(), "ds.json"));
    const RatePlan plan = rate_plan(config.rate, {.samples = 4800, .batch = 24, .sequence = 8});
    for (std::size_t step = 0; step < one.at("rates").size(); ++step) {
      const double theirs = std::strtod(one.at("rates")[step].get<std::string>().c_str(), nullptr);
      EXPECT_NEAR(plan.at(24 * std::int64_t(step)), theirs, 1e-13 * theirs) << file << " after " << step;
    }
  }
}

TEST(DeepSpeedFile, takes_schedules_with_what_deepspeed_takes_where_nothing_is_said) {
  const Said warm = said(R"({"scheduler": {"type": "WarmupLR"}})");
  EXPECT_THAT(warm.fields.at("rate.style"), ElementsAre("warmup_lr"));
  EXPECT_THAT(warm.fields.at("rate.warmup_curve"), ElementsAre("log"));
  EXPECT_THAT(warm.fields.at("rate.warmup_iterations"), ElementsAre("1000"));
  const Said waves =
      said(R"({"optimizer": {"type": "Adam", "params": {"lr": 0.5}}, "scheduler": {"type": "WarmupCosineLR",
    "params": {"cos_min_ratio": 0.25, "total_num_steps": 1e4}}})");
  EXPECT_THAT(waves.fields.at("rate.floor"), ElementsAre("0.125"));
  EXPECT_THAT(waves.fields.at("rate.start"), ElementsAre("0"));
  EXPECT_THAT(waves.fields.at("rate.decay_iterations"), ElementsAre("10000"));
  EXPECT_THAT(said(R"({"scheduler": {"type": "LRRangeTest"}})").fields.at("rate.peak"), ElementsAre("0.001"));
}

TEST(DeepSpeedFile, moves_betas_in_a_cycle_unless_it_says_otherwise) {
  const auto of = [](const std::string& more) {
    return said(R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 1)" +
                more + "}}}");
  };
  EXPECT_THAT(of("").fields.at("rate.cycle.momentum"), ElementsAre("true"));
  EXPECT_THAT(of("").fields.at("rate.cycle.least_momentum"), ElementsAre("0.8"));
  const Said moved = of(R"(, "cycle_min_mom": 0.7, "cycle_max_mom": 0.95, "decay_mom_rate": 0.01)");
  EXPECT_THAT(moved.fields.at("rate.cycle.least_momentum"), ElementsAre("0.7"));
  EXPECT_THAT(moved.fields.at("rate.cycle.most_momentum"), ElementsAre("0.95"));
  EXPECT_THAT(moved.fields.at("rate.cycle.momentum_growth"), ElementsAre("0.01"));
  EXPECT_THAT(of(R"(, "cycle_momentum": false)").fields.at("rate.cycle.momentum"), ElementsAre("false"));
}

// As Megatron-DeepSpeed's examples bring it.
TEST(DeepSpeedFile, lets_tokens_pass_layers_by) {
  const auto file = [](const std::string& inside) {
    return R"({"data_efficiency": {"enabled": true, "seed": 1234, "data_routing": {"enabled": true, "random_ltd": {)" +
           inside + R"("enabled": true, "total_layer_num": 24, "model_mask_name": "attention_mask",
      "model_type": "decoder", "hidden_state_order": "seq_batch_dim", "random_ltd_schedule": {"min_value": 128,
      "max_value": 2048, "schedule_type": "fixed_linear", "schedule_config": {"require_steps": 200000, "seq_per_step": 16}}}}}})";
  };
  const Said now = said(file(R"("random_ltd_layer_num": 3, "random_ltd_layer_id": [1, 2, 3], )"));
  for (const auto& [field, word] :
       {std::pair("least", "128"), {"most", "2048"}, {"steps", "200000"}, {"multiple", "16"}})
    EXPECT_THAT(now.fields.at(text("model.token_drop.", field)), ElementsAre(word)) << field;
  EXPECT_THAT(now.fields.at("model.token_drop.layers"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(now.fields.at("model.layers"), ElementsAre("24"));
  const std::string path = "data_efficiency.data_routing.random_ltd";
  EXPECT_EQ(refusal(file("")), "ds.json: " + path + ".enabled needs " + path +
                                   ".random_ltd_layer_id: which layers tokens pass by, counted from 0");
  EXPECT_EQ(refusal(file(R"("random_ltd_layer_num": 3, "random_ltd_layer_id": [1, 2], )")),
            "ds.json: " + path + ".random_ltd_layer_id: " + path +
                ".random_ltd_layer_num 3: random_ltd_layer_id names 2 layers");
  EXPECT_EQ(refusal(file(R"("random_ltd_layer_id": [1.5], )")),
            "ds.json: " + path + ".random_ltd_layer_id is [1.5], not a list of whole numbers");
}

TEST(DeepSpeedFile, leaves_layers_out) {
  const Said now = said(R"({"progressive_layer_drop": {"enabled": true, "theta": 0.5, "gamma": 0.01}})");
  EXPECT_THAT(now.fields.at("model.layer_drop.theta"), ElementsAre("0.5"));
  EXPECT_THAT(now.fields.at("model.layer_drop.gamma"), ElementsAre("0.01"));
  const Said off = said(R"({"progressive_layer_drop": {"enabled": false, "theta": 0.5}})");
  EXPECT_THAT(off.fields.at("model.layer_drop.theta"), ElementsAre("1"));
  EXPECT_EQ(
      refusal(R"({"progressive_layer_drop": {"enabled": true}})"),
      "ds.json: progressive_layer_drop.enabled needs progressive_layer_drop.theta: without it DeepSpeed "
      "takes 1, which leaves no layer out");
}

TEST(DeepSpeedFile, says_what_is_wrong_with_a_schedule) {
  const auto of = [](const std::string& type, const std::string& params) {
    return refusal(R"({"scheduler": {"type": ")" + type + R"(", "params": )" + params + "}}");
  };
  EXPECT_EQ(
      of("Exponential", "{}"),
      "ds.json: scheduler.type Exponential: DeepSpeed has WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle "
      "and LRRangeTest");
  EXPECT_EQ(of("WarmupDecayLR", "{}"),
            "ds.json: scheduler.type WarmupDecayLR needs scheduler.params.total_num_steps");
  EXPECT_EQ(of("OneCycle", R"({"cycle_min_lr": 0.1})"),
            "ds.json: scheduler.type OneCycle needs scheduler.params.cycle_max_lr");
  EXPECT_EQ(of("WarmupLR", R"({"total_num_steps": 5})"),
            "ds.json: scheduler.params.total_num_steps: WarmupLR has no such parameter");
  EXPECT_THAT(of("WarmupLR", R"({"warmup_type": "cubic"})"),
              HasSubstr("ds.json: scheduler.params.warmup_type: "));
  EXPECT_THAT(of("WarmupCosineLR", R"({"total_num_steps": 9})"),
              HasSubstr("add optimizer.params.lr, the rate"));
  EXPECT_EQ(refusal(R"({"scheduler": {"params": {"warmup_num_steps": 5}}})"),
            "ds.json: scheduler.params.warmup_num_steps needs scheduler.type");
}

// As DeepSpeed's own class does, whatever the optimizer's rate is; its others go to that one.
TEST(DeepSpeedFile, has_a_peak_of_its_own_where_a_rate_decays_to_nothing) {
  const auto of = [](const std::string& optimizer, const std::string& peak) {
    return R"({"optimizer": {"type": "Adam", "params": {)" + optimizer +
           R"(}}, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 9)" + peak + "}}}";
  };
  const auto peak = [](const std::string& json) { return said(json).fields.at("rate.peak"); };
  EXPECT_THAT(peak(of("", "")), ElementsAre("0.001"));
  EXPECT_THAT(peak(of(R"("lr": 0.001)", "")), ElementsAre("0.001"));
  EXPECT_THAT(peak(of(R"("lr": 0.5)", R"(, "warmup_max_lr": "auto")")), ElementsAre("0.5"));
  EXPECT_THAT(peak(of("", R"(, "warmup_max_lr": 0.25)")), ElementsAre("0.25"));
  EXPECT_EQ(refusal(of(R"("lr": 0.5)", "")),
            "ds.json: scheduler.type WarmupDecayLR goes to 0.001 where scheduler.params.warmup_max_lr is not "
            "said, and optimizer.params.lr is 0.5: add scheduler.params.warmup_max_lr");
}

TEST(DeepSpeedFile, must_agree_with_itself) {
  EXPECT_EQ(refusal(R"({"optimizer": {"type": "Adam", "params": {"lr": 0.5}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_type": "linear", "warmup_max_lr": 0.25}}})"),
            "ds.json: optimizer.params.lr 0.5 and scheduler.params.warmup_max_lr 0.25 contradict each other: "
            "leave one out");
  EXPECT_EQ(refusal(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})"),
            "ds.json: fp16.enabled f16 and bf16.enabled bf16 contradict each other: leave one out");
  EXPECT_EQ(refusal(R"({"zero_optimization": {"offload_optimizer": {"device": "nvme"}}})"),
            "ds.json: zero_optimization.offload_optimizer.device nvme needs "
            "zero_optimization.offload_optimizer.nvme_path: a "
            "directory on a local disk");
  EXPECT_EQ(refusal(R"({"zero_optimization": {"offload_optimizer": {"device": "disk"}}})"),
            "ds.json: zero_optimization.offload_optimizer.device disk is none of none, cpu and nvme");
  EXPECT_EQ(
      refusal(R"({"zero_optimization": {"offload_param": {"device": "nvme"}}})"),
      "ds.json: zero_optimization.offload_param.device nvme needs zero_optimization.offload_optimizer.device "
      "nvme: states take six times the room of weights");
  EXPECT_EQ(refusal(R"({"zero_optimization": {"offload_optimizer": {"device": "nvme", "nvme_path": "/a"},
    "offload_param": {"device": "nvme", "nvme_path": "/b"}}})"),
            "ds.json: zero_optimization.offload_param.device nvme: its nvme_path /b is not "
            "zero_optimization.offload_optimizer.nvme_path /a: weights and states of a rank lie in one file");
  EXPECT_EQ(
      refusal(R"({"tensorboard": {"enabled": true}})"),
      "ds.json: tensorboard.enabled needs tensorboard.output_path: the directory that event files go to");
}

TEST_F(DeepSpeed, and_flags_may_say_the_same) {
  const auto command = read(
      R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 16, "zero_optimization": {"stage": 2},
    "fp16": {"enabled": true}, "gradient_clipping": 1.0, "dump_state": true})",
      {"--global-batch-size", "256", "--micro-batch-size", "16", "--zero-stage", "2", "--fp16", "--clip-grad",
       "1.0", "--initial-loss-scale", "64"});
  EXPECT_EQ(command->config.batch.global, 256);
  EXPECT_EQ(command->config.scaling.initial, 64);  // a default of DeepSpeed's is not said
  EXPECT_EQ(command->fields.at("batch.global").origin(), Origin::command_line);
  EXPECT_THAT(command->notices, Contains(HasSubstr(text("dump_state of ", file_, " (weft train --dry-run"))));
}

TEST_F(DeepSpeed, and_flags_that_contradict_each_other_are_both_named) {
  const auto both = [&](const std::string& flag, const std::string& key, const std::string& rest) {
    return text("--", flag, " and ", key, " of ", file_, " contradict each other: one sets ", rest);
  };
  EXPECT_EQ(refused(R"({"train_micro_batch_size_per_gpu": 16})", {"--micro-batch-size", "8"}),
            both("micro-batch-size", "train_micro_batch_size_per_gpu", "batch.micro to 8, the other to 16"));
  EXPECT_EQ(
      refused(R"({"zero_optimization": {"stage": 0}})", {"--use-distributed-optimizer"}),
      both("use-distributed-optimizer", "zero_optimization.stage", "parallel.zero to 1, the other to 0"));
  EXPECT_EQ(refused(R"({"fp16": {"enabled": false}})", {"--fp16"}),
            both("fp16", "fp16.enabled", "model.precision to f16, and the other is false"));
  EXPECT_EQ(refused(R"({"bf16": {"enabled": true}})", {"--fp16"}),
            both("fp16", "bf16.enabled", "model.precision to f16, the other to bf16"));
  EXPECT_EQ(refused(R"({"fp16": {"enabled": true, "loss_scale": 0}})", {"--loss-scale", "8"}),
            both("loss-scale", "fp16.loss_scale", "scaling.constant to 8, the other to nothing"));
}

// Published job files have 0 beside 2, and 1 beside 2.
TEST_F(DeepSpeed, and_a_stage_of_the_files_wins_over_the_flag_as_its_engine_has_it) {
  const auto command = read(R"({"zero_optimization": {"stage": 2}})", {"--zero-stage", "0"});
  EXPECT_EQ(command->config.parallel.zero, 2);
  EXPECT_EQ(command->fields.at("parallel.zero").origin(), Origin::file);
  EXPECT_THAT(command->notices, Contains(text("no effect here: --zero-stage 0 (zero_optimization.stage 2 of ",
                                              file_, " is what DeepSpeed's engine reads)")));
  EXPECT_EQ(read("{}", {"--zero-stage", "1"})->config.parallel.zero, 1);
}

TEST_F(DeepSpeed, gives_the_third_of_a_batch_once_ranks_are_known) {
  EXPECT_EQ(settled(R"({"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8})", {}, 2),
            "4 of 64, groups 1");
  EXPECT_EQ(settled(R"({"train_batch_size": 64, "gradient_accumulation_steps": 8})", {}, 2),
            "4 of 64, groups 1");
  EXPECT_EQ(settled(R"({"train_batch_size": 64})", {}, 2), "32 of 64, groups 1");
  EXPECT_EQ(settled(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4})", {}, 2),
            "4 of 64, groups 1");
  EXPECT_EQ(settled(R"({"gradient_accumulation_steps": 2})",
                    {"--micro-batch-size", "4", "--ranks", "6", "--tensor-model-parallel-size", "2"}, 0),
            "4 of 24, groups 1");
  EXPECT_EQ(
      settled(
          R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4})",
          {}, 2),
      text("{batch.global} 64 is not {batch.micro} 4 times gradient_accumulation_steps 4 of ", file_,
           " times 2 data-parallel ranks, 32"));
  EXPECT_EQ(settled(R"({"train_batch_size": 10, "gradient_accumulation_steps": 4})", {}, 1),
            text("{batch.global} 10 is not a multiple of 4 microbatches on 1 data-parallel ranks: say "
                 "train_micro_batch_size_per_gpu in ",
                 file_));
  EXPECT_EQ(settled(R"({"gradient_accumulation_steps": 4})", {"--rampup-batch-size", "2", "2", "8"}, 1),
            text("gradient_accumulation_steps of ", file_,
                 " holds one batch, and {batch.rampup} lets it grow: leave one out"));
}

TEST_F(DeepSpeed, keeps_zero_inside_groups_of_ranks) {
  const std::string mics = R"({"zero_optimization": {"stage": 3, "mics_shard_size": 2}})";
  EXPECT_EQ(settled(mics, {}, 8), "0 of 0, groups 4");
  EXPECT_EQ(settled(mics, {}, 3),
            text("zero_optimization.mics_shard_size 2 of ", file_, " does not divide 3 data-parallel ranks"));
  EXPECT_EQ(settled(mics, {"--num-distributed-optimizer-instances", "2"}, 8),
            text("{parallel.shard_groups} 2 and zero_optimization.mics_shard_size 2 of ", file_,
                 " contradict each other: 8 data-parallel ranks are 4 groups of 2"));
}
