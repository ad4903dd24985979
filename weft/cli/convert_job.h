// What weft checkpoint convert was asked for, and what it made.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/legal.h"
#include "weft/cli/read_model.h"
#include "weft/exchange/hub_write.h"

namespace weft::cli {

enum class Form : std::uint8_t { guess, weft, hf, megatron, deepspeed, gguf };
constexpr std::array<std::string_view, 6> words(Form) {
  return {"guess", "weft", "hf", "megatron", "deepspeed", "gguf"};
}
enum class Store : std::uint8_t { same, f32, bf16, f16, q8_0 };
constexpr std::array<std::string_view, 5> words(Store) { return {"same", "f32", "bf16", "f16", "q8_0"}; }

struct ConvertOptions {
  std::string from = "guess", to = "guess";
  Store dtype = Store::same;
  bool weights_only = false;
  std::string tokenizer, config;
  std::int64_t shard_bytes = 5'000'000'000;
  std::string device = "cpu";
  int threads = 0;
  bool json = false;
};

template <class Visitor>
void describe(Visitor& v, ConvertOptions& o) {
  v("from", o.from, "weft, hf, megatron, deepspeed or gguf; guess: what FROM is");
  v("to", o.to, "weft, hf, megatron or gguf; guess: gguf where TO ends so, else weft, and of weft hf");
  v("dtype", o.dtype,
    "type of the numbers written; same: as they are stored; q8_0: of gguf alone, eight bits and a scale for "
    "32");
  v("weights_only", o.weights_only,
    "weft: leave the optimizer's states and the place in the data behind, where a run could go on with them");
  v("tokenizer", o.tokenizer,
    "directory or file of the tokenizer to put beside the weights, instead of the model's");
  v("config", o.config,
    "of DeepSpeed's: config.json of the model, or its directory, where none lies in FROM or above it");
  v("shard_bytes", o.shard_bytes, "hf, megatron: files are not larger than this");
  v("device", o.device, "what computes the logits that are compared");
  v("threads", o.threads, "of the device (0: the processors it may use)", legal::from_to(0, 1024));
  v("json", o.json, "one JSON object");
}

struct Conversion {
  ConvertOptions options;
  std::filesystem::path from, to;
  Form source = Form::weft, target = Form::hf;
};

Dtype dtype_or(Store wanted, Dtype same);

struct Result {
  exchange::Written written;
  Dtype stored = Dtype::f32, dtype = Dtype::f32;
  bool in_blocks = false;  // of q8_0, which is no type of ours
  std::vector<std::string> tokenizer;
  std::filesystem::path made;
};

/// What a text of the model goes by beside the tokenizer; empty where nothing does.
std::string generation_json(const Generation& generation);

/// Fails with Kind::usage where the directory to be made holds a checkpoint or a model.
void must_hold_no_model(const std::filesystem::path& to);

/// Another program's model as a step of weft: of a run that may go on with what it goes on with.
Result to_weft(const Conversion& job, const NamedModel& source);
Result to_hub(const Conversion& job, const NamedModel& source);
/// A release, which Megatron-LM reads under any layout.
Result to_megatron(const Conversion& job, const NamedModel& source);
/// One file, which llama.cpp reads.
Result to_gguf(const Conversion& job, const NamedModel& source);

/// The same model with the numbers that a file of q8_0 has of it.
NamedModel rounded_to_blocks(const NamedModel& source);

/// The names of the files that were written of a GGUF file's tokenizer; none, and it is said why, where none
/// can be made of it.
std::vector<std::string> write_tokenizer_of_gguf(const std::filesystem::path& file,
                                                 const std::filesystem::path& directory);

/// Copies what is named by --tokenizer into a directory, under the names that transformers and weft look for;
/// those names. Fails with Kind::usage where it is no tokenizer.
std::vector<std::string> copy_given_tokenizer(const Conversion& job, const ModelConfig& model,
                                              const std::filesystem::path& to);
/// The same of the tokenizer that is asked for, or of the model's own.
std::vector<std::string> tokenizer_beside(const Conversion& job, const NamedModel& source,
                                          const std::filesystem::path& to);

/// Whole tensors of ours, wherever they come from.
struct Reading {
  Dtype stored = Dtype::f32;
  exchange::ReadWeight read;
};
Reading reading_of(const NamedModel& source);
/// What is to be made, and of which types: matrices in eight bits become bf16 unless something else is asked.
Result result_for(const Conversion& job, const NamedModel& source, const Reading& reading);

}  // namespace weft::cli
