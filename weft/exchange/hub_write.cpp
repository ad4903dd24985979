// Their tensors in the order of ours, so that what several of theirs are cut from is read once.
#include "weft/exchange/hub_write.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/model/kinds.h"

namespace weft::exchange {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t chunk_elements = std::size_t{1} << 20;

/// A part of one of our tensors.
struct Source {
  const Recipe* recipe = nullptr;
  std::size_t part = 0;
};

struct TensorToWrite {
  std::vector<Source> slabs;  // one of a tensor that has none; empty: zeros
  const Theirs* tensor = nullptr;
  std::int64_t bytes = 0;
  const Theirs& theirs() const { return *tensor; }
  Dtype dtype(Dtype usual) const { return theirs().always_f32 ? Dtype::f32 : usual; }
};

const Recipe* recipe_of(std::string_view ours, const std::vector<Recipe>& all) {
  const auto found = std::ranges::find(all, ours, &Recipe::name);
  return found == all.end() ? nullptr : &*found;
}

std::vector<TensorToWrite> jobs_of(const std::vector<Recipe>& all, const std::vector<Theirs>& beside,
                                   Dtype dtype) {
  std::vector<TensorToWrite> jobs;
  std::map<std::string_view, std::size_t> of_slabs;  // the jobs of tensors that several of ours are slabs of
  const auto add = [&](const Recipe* recipe, std::size_t part, const Theirs& theirs) {
    if (theirs.slab.value_or(0) > 0) return jobs[of_slabs.at(theirs.name)].slabs.push_back({recipe, part});
    if (theirs.slab) of_slabs[theirs.name] = jobs.size();
    TensorToWrite job{{}, &theirs, 0};
    if (recipe != nullptr) job.slabs.push_back({recipe, part});
    job.bytes = theirs.shape.elements() * size_of(job.dtype(dtype));
    jobs.push_back(std::move(job));
  };
  for (const Recipe& recipe : all)
    for (std::size_t part = 0; part < recipe.parts.size(); ++part) add(&recipe, part, recipe.parts[part]);
  for (const Theirs& theirs : beside) add(recipe_of(theirs.copy_of, all), 0, theirs);
  return jobs;
}

std::vector<std::vector<TensorToWrite>> shards_of(const std::vector<TensorToWrite>& jobs,
                                                  std::int64_t shard_bytes) {
  std::vector<std::vector<TensorToWrite>> shards(1);
  std::int64_t filled = 0;
  for (const TensorToWrite& job : jobs) {
    if (filled > 0 && filled + job.bytes > shard_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(job);
    filled += job.bytes;
  }
  return shards;
}

void write_as(Dtype dtype, const std::vector<float>& values, File& file) {
  visit_float(dtype, [&]<class T>() {
    std::vector<T> part;
    for (std::size_t at = 0; at < values.size(); at += chunk_elements) {
      const std::size_t now = std::min(chunk_elements, values.size() - at);
      part.clear();
      for (std::size_t i = 0; i < now; ++i) part.push_back(T(values[at + i]));
      file.write(std::as_bytes(std::span<const T>(part)));
    }
  });
}

class Kitchen {
 public:
  Kitchen(const ReadWeight& read, Dtype dtype) : parts_(read), dtype_(dtype) {}
  void write_shard(const fs::path& path, const std::vector<TensorToWrite>& jobs) {
    std::vector<checkpoint::Entry> entries;
    std::map<std::string, const TensorToWrite*> by_name;
    for (const TensorToWrite& job : jobs) {
      entries.push_back({job.theirs().name, job.dtype(dtype_), job.theirs().shape, 0});
      by_name[entries.back().name] = &job;
    }
    const std::string first = checkpoint::lay_out(entries, {{"format", "pt"}});
    checkpoint::write_tensors(path, first, entries, [&](const checkpoint::Entry& entry, File& file) {
      const TensorToWrite& job = *by_name.at(entry.name);
      if (job.slabs.empty())
        write_as(job.dtype(dtype_), std::vector<float>(std::size_t(job.theirs().elements())), file);
      for (const Source& slab : job.slabs)
        write_as(job.dtype(dtype_), parts_.values(*slab.recipe, slab.part), file);
    });
  }

 private:
  HubParts parts_;
  Dtype dtype_;
};

std::string shard_name(std::size_t i, std::size_t count) {
  if (count == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, count);
  return name;
}

}  // namespace

void must_be_free(const fs::path& directory) {
  std::error_code error;
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"})
    if (fs::exists(directory / name, error))
      fail(Kind::usage, directory.string(), ": holds a model already (", name, "); name another directory");
}

Written write_hub(const fs::path& directory, const ModelConfig& model, const ReadWeight& read,
                  const HubExport& how) {
  const std::string config = hub_config_json(model, how.dtype, how.tokens);
  must_be_free(directory);
  make_directories(directory);
  const std::vector<Recipe> all = recipes(type_for(model), model);
  const HubSpelling hub = kind_of(model).hub;
  const std::vector<Theirs> beside = hub.beside ? hub.beside(model) : std::vector<Theirs>();
  const auto shards = shards_of(jobs_of(all, beside, how.dtype), how.shard_bytes);
  Kitchen kitchen(read, how.dtype);
  Written out{.files = std::ssize(shards)};
  nlohmann::ordered_json map;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    kitchen.write_shard(directory / name, shards[i]);
    for (const TensorToWrite& job : shards[i]) {
      map[job.theirs().name] = name;
      out.bytes += job.bytes;
      ++out.tensors;
    }
  }
  if (shards.size() > 1) {
    const nlohmann::ordered_json index{{"metadata", {{"total_size", out.bytes}}}, {"weight_map", map}};
    write_atomically(directory / "model.safetensors.index.json", std::string_view(index.dump(2) + "\n"));
  }
  write_atomically(directory / generation_file, std::string_view(generation_config_json(how.tokens)));
  write_atomically(directory / "config.json", std::string_view(config));
  return out;
}

namespace {

/// In a folder of its own, or as a checkpoint keeps it.
void copy_tool_template(const fs::path& from, const fs::path& directory) {
  const fs::path apart = fs::path("additional_chat_templates") / "tool_use.jinja";
  for (const fs::path& file : {from / apart, from / apart.filename()}) {
    if (!fs::is_regular_file(file)) continue;
    make_directories((directory / apart).parent_path());
    return write_atomically(directory / apart, std::string_view(read_file(file)));
  }
}

}  // namespace

std::vector<std::string> copy_tokenizer(const fs::path& from, const fs::path& directory) {
  make_directories(directory);
  std::vector<std::string> names;
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
        "chat_template.jinja", "tokenizer.model", "spiece.model", "vocab.json", "merges.txt", "vocab.txt"}) {
    if (!fs::is_regular_file(from / name)) continue;
    write_atomically(directory / name, std::string_view(read_file(from / name)));
    names.push_back(name);
  }
  copy_tool_template(from, directory);
  return names;
}

std::vector<float> StepWeights::read(const Recipe& recipe) {
  const auto found = step_.index().tensors.find(recipe.name);
  const std::string where = step_.directory().string();
  if (found == step_.index().tensors.end()) fail(Kind::usage, where, ": holds no ", recipe.name);
  const checkpoint::Stored& stored = found->second;
  if (stored.global != recipe.shape || !is_float(stored.dtype))
    fail(Kind::usage, where, ": holds ", recipe.name, " as ", name(stored.dtype), ' ', stored.global,
         ", and its configuration says ", recipe.shape);
  std::vector<float> out(std::size_t(stored.global.elements()));
  Dims zero;
  for (int i = 0; i < stored.global.rank(); ++i) zero.push_back(0);
  const checkpoint::Box whole{Shape(zero), stored.global};
  for (const checkpoint::Block& block : stored.blocks) {
    const auto bytes = step_.read(recipe.name, stored, block);
    visit_float(stored.dtype, [&]<class T>() {
      checkpoint::each_run(block.box, block.box, whole, [&](const checkpoint::Run& run) {
        for (std::int64_t i = 0; i < run.count; ++i) {
          T value;
          std::memcpy(&value, bytes.data() + (run.from + i) * std::int64_t(sizeof(T)), sizeof value);
          out[std::size_t(run.to + i)] = static_cast<float>(value);
        }
      });
    });
  }
  return out;
}

}  // namespace weft::exchange
