#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/told.h"
#include "tests/support/temporary.h"
#include "weft/backend/cpu/fast/instruction_set.h"
#include "weft/base/format.h"
#include "weft/cli/completion.h"
#include "weft/cli/doctor.h"
#include "weft/cli/verbs.h"

using namespace weft::cli;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

namespace {

Told told(std::vector<std::string_view> words) { return run_and_hear(words); }

int nothing(Args) { return 0; }
VerbHelp about() {
  return {
      .usage = "weft spin [options]",
      .examples = {{"weft spin --yarn silk", "it's fine"}},
      .topics = {
          {"Yarn",
           {{"--yarn", "wool|silk", "of [what]"}, {"--pattern", "FILE", "how"}, {"--fast", "", "at once"}}}}};
}
constexpr Verb table[] = {{"spin", "makes yarn", nothing, about}};

}  // namespace

TEST(Version, tells_compiler_instruction_sets_and_libraries) {
  EXPECT_THAT(told({"version"}).out,
              AllOf(StartsWith("weft 0."), HasSubstr("compiler  "), HasSubstr("fmt ")));
  const Json j = Json::parse(told({"version", "--json"}).out);
  EXPECT_TRUE(j["libraries"].contains("oneDNN"));
  EXPECT_EQ(told({"version", "x"}).err, "version: takes no 'x'\n");
}

// Another kind of processor, or a sanitized build, has fewer of them.
TEST(Version, tells_which_loops_were_compiled_and_which_run_here) {
  std::vector<std::string> built;
  for (const auto set : weft::fast::instruction_sets)
    if (weft::fast::is_built(set)) built.emplace_back(weft::fast::name(set));
  const std::string here = weft::fast::name(weft::fast::best_here());
  EXPECT_THAT(told({"version"}).out, HasSubstr("instruction sets  " + weft::join(built, ", ") +
                                               "; this processor runs " + here + "\n"));
  const Json j = Json::parse(told({"version", "--json"}).out)["instruction_sets"];
  EXPECT_EQ(j["compiled"], Json(built));
  EXPECT_EQ(j["here"], here);
}

TEST(Doctor, finds_this_machine_in_order) {
  const Told t = told({"doctor", "--json"});
  EXPECT_EQ(t.status, 0);
  const Json j = Json::parse(t.out);
  EXPECT_EQ(j["findings"].size(), 10u);
  for (const Json& finding : j["findings"]) EXPECT_NE(finding["verdict"], "broken") << finding;
  EXPECT_EQ(told({"doctor", "x"}).err, "doctor: takes no 'x'\n");
}

TEST(Doctor, says_when_a_launcher_bound_the_process) {
  EXPECT_EQ(binding(2, 2).sentence, "2 of 2 may be used");
  EXPECT_EQ(binding(1, 64).sentence,
            "this process may use 1 of 64: its launcher bound it (mpirun: --bind-to none)");
  const Finding found[] = {binding(1, 64)};
  EXPECT_THAT(findings_text(found), StartsWith("slow    processors  this process"));
}

TEST(Doctor, says_when_a_program_was_made_for_a_lesser_processor) {
  EXPECT_EQ(loops_here("avx2", "").sentence, "runs the avx2 loops");
  EXPECT_EQ(loops_here("generic", "").verdict, Verdict::warn);
  EXPECT_EQ(
      loops_here("avx2", "avx512").sentence,
      "runs avx512, and this program has loops for avx2 at best: it was made on another kind (make demo); "
      "make program builds for every kind");
}

TEST(Doctor, names_nvidias_driver_and_its_gpus) {
  const weft::support::TemporaryDirectory proc;
  EXPECT_EQ(gpus(proc.path()).sentence, "no driver of NVIDIA's is loaded");
  const auto write = [&](const std::string& name, const std::string& text) {
    const auto file = proc / ("driver/nvidia/" + name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  write("version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build\n");
  EXPECT_EQ(gpus(proc.path()).sentence, "driver 550.54.15, which knows of none");
  for (const char* place : {"gpus/0000:01:00.0", "gpus/0000:02:00.0"})
    write(std::string(place) + "/information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 16\n");
  EXPECT_EQ(gpus(proc.path()).sentence, "driver 550.54.15, 2 x NVIDIA H100 80GB HBM3");
}

TEST(Doctor, says_what_is_known_of_kernels_for_gpus) {
  EXPECT_EQ(gpu_kernels().sentence,
            "this build has no CUDA, and docs/gpu.md says how one is made that has; every kernel runs on an "
            "emulator in the tests and compiles for sm_80, sm_90a and sm_100a; of GPUs one H100 has run them "
            "for us, alone (docs/gpu.md)");
}

TEST(Doctor, says_what_falls_back_on_plain_loops) {
  EXPECT_EQ(plain_loops().verdict, Verdict::good) << plain_loops().sentence;
  EXPECT_EQ(
      plain_loops({{"rope", 12}, {"softmax", 1}}).sentence,
      "plain loops of doubles computed a part of small models' training: rope 12 times, softmax 1 times");
}

TEST(Completion, knows_verbs_flags_and_the_words_they_take) {
  EXPECT_THAT(bash_completion(table),
              AllOf(HasSubstr("compgen -W 'spin'"), HasSubstr("spin:--yarn) words='wool silk'"),
                    HasSubstr("spin) words=' --yarn --pattern --fast'")));
  EXPECT_THAT(zsh_completion(table),
              AllOf(StartsWith("#compdef weft\n"), HasSubstr("'*--yarn[of \\[what\\]]:value:(wool silk)'"),
                    HasSubstr("'*--pattern[how]:file:_files'"), HasSubstr("'*--fast[at once]'")));
  EXPECT_THAT(fish_completion(table), HasSubstr("-l yarn -x -a 'wool silk' -d 'of [what]'\n"));
  EXPECT_EQ(told({"completion", "tcsh"}).err, "completion: name one shell, bash, zsh or fish\n");
}

TEST(Completion, knows_one_name_of_a_flag_and_no_placeholder_as_a_word) {
  const auto twists = [] {
    return VerbHelp{.usage = "weft twist",
                    .examples = {},
                    .topics = {{"Twists",
                                {{"--turns, -t", "N|auto", "how many"},
                                 {"--to", "FOLDER|FILE", "where"},
                                 {"--kinds", "left|right ...", "which"}}}}};
  };
  const Verb verbs[] = {{"twist", "makes thread", nothing, twists}};
  const std::string bash = bash_completion(verbs);
  EXPECT_THAT(bash, AllOf(HasSubstr("twist:--turns) words='auto' ;;"),
                          HasSubstr("twist:--kinds) words='left right' ;;"), Not(HasSubstr("FOLDER"))));
  EXPECT_THAT(fish_completion(verbs), HasSubstr("-l turns -x -a 'auto' -d 'how many'\n"));
  EXPECT_THAT(zsh_completion(verbs), HasSubstr("'*--turns[how many]:value:(auto)'"));
}

TEST(Completion, knows_what_stands_behind_a_verb) {
  const auto knits = [] {
    return VerbHelp{
        .usage = "weft knit [hat|sock|FILE] [options]; weft knit scarf --long", .examples = {}, .topics = {}};
  };
  const Verb verbs[] = {{"knit", "makes clothes", nothing, knits}};
  EXPECT_THAT(bash_completion(verbs), HasSubstr("((COMP_CWORD == 2)) && [[ $word != -* ]] && case $verb in\n"
                                                "    knit) words='hat sock scarf' ;;\n"));
  EXPECT_THAT(zsh_completion(verbs), HasSubstr("'1:what:(hat sock scarf)'"));
  EXPECT_THAT(
      fish_completion(verbs),
      HasSubstr("'__fish_seen_subcommand_from knit; and not __fish_seen_subcommand_from hat sock scarf' "
                "-a 'hat sock scarf'\n"));
  EXPECT_THAT(bash_completion(table), Not(HasSubstr("spin) words='options'")));
}

TEST(Completion, of_all_verbs_is_a_script_that_bash_reads) {
  const weft::support::TemporaryDirectory folder;
  const std::string script = (folder / "weft.bash").string();
  std::ofstream(script) << bash_completion(verbs());
  const std::string asked = "bash -c 'source " + script +
                            " && COMP_WORDS=(weft launch --redirects \"\") COMP_CWORD=3 && _weft && "
                            "[[ \"${COMPREPLY[*]}\" == \"0 1 2 3\" ]]'";
  EXPECT_EQ(std::system(asked.c_str()), 0);
}

TEST(ManPage, is_made_from_the_same_list) {
  EXPECT_THAT(man_page(table), AllOf(StartsWith(".TH WEFT 1"), HasSubstr(".SH \"WEFT spin\"\n"),
                                     HasSubstr(".TP\n.B \\-\\-yarn \\fIwool|silk\\fR\nof [what]\n"),
                                     HasSubstr("weft spin \\-\\-yarn silk")));
}
