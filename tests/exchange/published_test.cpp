// config.json of the shapes of published models, in the words they are published in: nothing in it is
// unknown, and the model has as many parameters as transformers makes of the same file.
#include <gtest/gtest.h>

#include "tests/exchange/hub.h"
#include "weft/base/file.h"
#include "weft/exchange/hub_config.h"
#include "weft/exchange/recipe.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::exchange;

namespace {

struct Published {
  const char *name, *written_as;
  std::int64_t parameters;
};

// Counted by tests/golden/exchange/published/count.py, with the biases that choose experts, and without what
// guesses further tokens. Of OPT without the two rows in front of its places.
constexpr Published published[] = {{"phi3_mini_4k", "mistral", 3'821'079'552},
                                   {"phi4", "llama", 14'659'507'200},
                                   {"smollm3_3b", "smollm3", 3'075'098'624},
                                   {"glm4.5_air", "glm4_moe", 106'852'251'264},
                                   {"glm4.5", "glm4_moe", 352'797'829'024},
                                   {"olmo2_7b", "olmo2", 7'298'617'344},
                                   {"olmo3_7b", "olmo3", 7'298'011'136},
                                   {"gemma3_1b", "gemma3_text", 999'885'952},
                                   {"gemma2_2b", "gemma2", 2'614'341'888},
                                   {"glm4_9b", "glm4", 9'400'094'720},
                                   {"granite3.1_8b", "granite", 8'170'848'256},
                                   {"exaone4_32b", "exaone4", 32'003'216'384},
                                   {"bamba_9b", "bamba", 9'780'235'392},
                                   {"granite4.0_h_tiny", "granitemoehybrid", 6'939'037'248},
                                   {"mamba_codestral_7b", "mamba2", 7'285'403'648},
                                   {"pythia_1.4b", "gpt_neox", 1'414'647'808},
                                   {"command_r", "cohere", 34'980'831'232},
                                   {"command_r_plus", "cohere", 103'810'674'688},
                                   {"stablelm_2_12b", "stablelm", 12'143'185'920},
                                   {"olmo_7b", "olmo", 6'888'095'744},
                                   {"granite3.0_3b_a800m", "granitemoe", 3'298'793'472},
                                   {"hunyuan_a13b", "hunyuan_v1_moe", 80'393'183'232},
                                   {"command_r7b", "cohere2", 8'028'033'024},
                                   {"starcoder2_3b", "starcoder2", 3'030'371'328},
                                   {"minitron_8b", "nemotron", 8'271'699'968},
                                   {"glm_4_9b", "glm", 9'399'951'360},
                                   {"seed_oss_36b", "qwen2", 36'151'104'512},
                                   {"ernie4.5_0.3b", "llama", 360'748'032},
                                   {"minimax_m2", "minimax_m2", 228'689'764'864},
                                   {"ministral3_8b", "ministral3", 8'489'553'920},
                                   {"phi_2", "phi", 2'779'683'840},
                                   {"falcon_7b", "falcon", 6'921'720'704},
                                   {"falcon_40b", "falcon", 41'303'293'952},
                                   {"falcon_rw_1b", "falcon", 1'311'625'216},
                                   {"opt_6.7b", "gpt2", 6'658'473'984 - 2 * 4096},
                                   {"gpt_neo_2.7b", "gpt_neo", 2'651'307'520},
                                   {"starcoder_15b", "gpt_bigcode", 15'517'456'384},
                                   {"bloom_7b1", "bloom", 7'069'016'064},
                                   {"mpt_7b", "mpt", 6'649'286'656},
                                   {"stablelm_3b", "stablelm", 2'795'443'200},
                                   {"gptj_6b", "gptj", 6'050'882'784},
                                   {"llama4_scout", "llama4_text", 107'769'861'120}};

std::filesystem::path file_of(const std::string& name) { return hub_model("published") / (name + ".json"); }

HubConfig read(const std::string& name) { return hub_config_from_json(read_file(file_of(name)), name); }

}  // namespace

TEST(Published, models_have_the_parameters_that_transformers_makes_of_them) {
  for (const Published& one : published) {
    const HubConfig config = read(one.name);
    EXPECT_EQ(config.notices, std::vector<std::string>{}) << one.name;
    std::int64_t parameters = 0;
    for (const Recipe& recipe : recipes(config.type, config.model)) parameters += recipe.shape.elements();
    EXPECT_EQ(parameters, one.parameters) << one.name;
  }
}

TEST(Published, models_are_written_and_read_again) {
  for (const Published& one : published) {
    const HubConfig config = read(one.name);
    EXPECT_EQ(type_for(config.model), one.written_as);
    const HubConfig again = hub_config_from_json(hub_config_json(config.model, Dtype::bf16, {}), one.name);
    EXPECT_NO_THROW(must_agree(config.model, again.model, one.name)) << one.name;
  }
}

TEST(Published, every_file_is_asked_for) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(hub_model("published")))
    files += entry.path().extension() == ".json" ? 1 : 0;
  EXPECT_EQ(files, std::size(published));
}
