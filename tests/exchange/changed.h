// Model directories of the tests with other settings, a tensor less or one more, and what is said of them.
#pragma once

#include <functional>
#include <map>

#include "tests/exchange/hub.h"
#include "tests/support/refused.h"
#include "tests/support/temporary.h"
#include "weft/exchange/hub_write.h"

namespace weft::testing {

inline const std::vector<std::int32_t> written_prompt{3, 1, 4, 1, 5, 9, 2, 6};

inline nlohmann::json settings_of(const std::string& name) {
  std::ifstream file(hub_model(name) / "config.json");
  return nlohmann::json::parse(file);
}

inline ModelConfig model_of(const std::string& name) {
  return exchange::read_hub_config(hub_model(name)).model;
}

/// The same of other settings, or without some.
inline ModelConfig model_with(const std::string& name, const nlohmann::json& changes,
                              std::initializer_list<const char*> without = {}) {
  nlohmann::json object = settings_of(name);
  for (const char* one : without) object.erase(one);
  object.update(changes);
  return exchange::hub_config_from_json(object.dump(), "c").model;
}

/// Of what is said where no type has a model what it is that none has.
inline std::string reason_in(const std::string& said) {
  constexpr std::string_view before = " weft writes has ";
  const std::size_t from = said.find(before) + before.size();
  return said.substr(from, said.rfind("; it writes ") - from);
}
inline std::string reason(const ModelConfig& model) {
  return reason_in(refused([&] { (void)exchange::type_for(model); }));
}

inline std::string reason(const std::string& name, const std::function<void(ModelConfig&)>& change) {
  ModelConfig model = model_of(name);
  change(model);
  return reason(model);
}

/// Written and read again it is the same model.
inline void expect_kept(const ModelConfig& model, const std::string& type) {
  using namespace exchange;
  EXPECT_EQ(type_for(model), type);
  const HubConfig again = hub_config_from_json(hub_config_json(model, Dtype::f32, {}), "c");
  EXPECT_EQ(again.type, type);
  EXPECT_NO_THROW(must_agree(model, again.model, "c"));
  EXPECT_TRUE(again.notices.empty());
}

/// What is said of a model's config.json with other settings.
inline std::string said(const std::string& name, const nlohmann::json& changes) {
  nlohmann::json object = settings_of(name);
  object.update(changes);
  return refused([&] { (void)exchange::hub_config_from_json(object.dump(), "c"); });
}

/// A copy of a directory whose tensors are zeros, without one of them, or with one more.
inline void copy_changed(const std::string& name, const std::filesystem::path& to, const std::string& without,
                         const std::string& more) {
  std::filesystem::copy(hub_model(name), to, std::filesystem::copy_options::recursive);
  const auto file = to / "model.safetensors";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  auto entries = checkpoint::TensorFile(file).header().entries;
  std::erase_if(entries, [&](const checkpoint::Entry& e) { return e.name == without; });
  if (!more.empty()) entries.push_back({more, Dtype::f32, {4}, 0});
  const std::string first = checkpoint::lay_out(entries);
  checkpoint::write_tensors(file, first, entries, [](const checkpoint::Entry& entry, File& written) {
    written.write(std::string(std::size_t(entry.bytes()), '\0'));
  });
}

/// What is said of a model one of whose tensors is missing, or that has one more.
inline std::string said_without(const std::string& name, const std::string& tensor,
                                const std::string& more = "") {
  const support::TemporaryDirectory folder;
  copy_changed(name, folder.path(), tensor, more);
  const std::string words =
      refused([&] { exchange::HubWeights(folder.path(), exchange::read_hub_config(folder.path())); });
  const std::string at = folder.path().string() + ": ";
  return words.starts_with(at) ? words.substr(at.size()) : words;
}

/// Writes a model whose gains are `gain` of their place, and says what it makes of a prompt.
inline std::vector<float> write_with_gains(const ModelConfig& config, const std::filesystem::path& to,
                                           const std::function<float(std::size_t)>& gain) {
  SoloCommunicator solo;
  const auto device = open_device("cpu", {.threads = 1});
  TinyModel model(config, *device);
  std::map<std::string, std::vector<float>> values;
  model.stage().each_parameter([&](Parameter& p) {
    auto all = to_host<float>(p.value);
    if (p.name.ends_with("gain"))
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = gain(i);
    copy_to<float>(p.value, all);
    all.resize(std::size_t(p.pieces.front().where.global.elements()));
    values[p.name] = all;
  });
  exchange::write_hub(to, config, [&](const Recipe& r) { return values.at(r.name); }, {});
  return TextReader({model.stages(), config, {solo}, *device}).logits(written_prompt, 8);
}

}  // namespace weft::testing
