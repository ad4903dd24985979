// To one file, which llama.cpp and what is built on it read.
#include <iostream>

#include "weft/base/error.h"
#include "weft/cli/convert_job.h"
#include "weft/exchange/gguf/write.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using exchange::gguf::NumberType;

void must_be_no_file(const fs::path& to) {
  std::error_code error;
  if (fs::exists(to, error))
    fail(Kind::usage, to.string(), ": is there already; name a file that is not, which ends in .gguf");
}

/// What the model is called: its directory's name.
std::string name_of(const fs::path& from) {
  const fs::path whole = fs::absolute(from).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).stem().string();
}

}  // namespace

Result to_gguf(const Conversion& job, const NamedModel& source) {
  must_be_no_file(job.to);
  const Reading reading = reading_of(source);
  const bool coded = source.theirs && source.theirs->hub && source.theirs->hub->blocks;
  Result out;
  out.made = job.to;
  out.stored = coded ? Dtype::f8e4m3 : reading.stored;
  out.dtype = dtype_or(job.options.dtype, coded ? Dtype::bf16 : reading.stored);
  out.in_blocks = job.options.dtype == Store::q8_0;
  if (out.in_blocks) out.dtype = Dtype::f32;  // as it is read
  exchange::gguf::Values vocabulary;
  (void)vocabulary.add("tokenizer.ggml.model", exchange::gguf::text_of("none"));  // it is given ids alone
  const exchange::gguf::FileForm form{
      .type = out.in_blocks ? NumberType::q8_0 : exchange::gguf::number_type_of(out.dtype),
      .name = name_of(job.from),
      .vocabulary = std::move(vocabulary)};
  out.written = exchange::gguf::write_model(job.to, source.settings.model, reading.read, form);
  return out;
}

}  // namespace weft::cli
