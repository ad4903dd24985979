// Writing data sets: tokens go to the .bin as they come, what the index needs to small files beside it.
#include "weft/data/token_writer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "weft/base/error.h"
#include "weft/data/index_bytes.h"

namespace weft::data {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
void encode(std::span<const std::int32_t> tokens, std::vector<std::byte>& to) {
  to.resize(tokens.size() * sizeof(T));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const T value = static_cast<T>(tokens[i]);
    std::memcpy(to.data() + i * sizeof(T), &value, sizeof(T));
  }
}

void encode_as(TokenType type, std::span<const std::int32_t> tokens, std::vector<std::byte>& to) {
  switch (type) {
    case TokenType::u8:
      return encode<std::uint8_t>(tokens, to);
    case TokenType::i8:
      return encode<std::int8_t>(tokens, to);
    case TokenType::i16:
      return encode<std::int16_t>(tokens, to);
    case TokenType::i32:
      return encode<std::int32_t>(tokens, to);
    case TokenType::i64:
      return encode<std::int64_t>(tokens, to);
    case TokenType::f64:
      return encode<double>(tokens, to);
    case TokenType::f32:
      return encode<float>(tokens, to);
    case TokenType::u16:
      return encode<std::uint16_t>(tokens, to);
  }
}

}  // namespace

class TokenWriter::Stream {
 public:
  Stream(const std::string& path, const FileSystem& files) : file_(path, Open::create, files), files_(files) {
    buffer_.reserve(buffer_bytes);
  }
  ~Stream() {
    if (!kept_) files_.remove(file_.path().c_str());
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void put(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > buffer_bytes) flush();
    if (bytes.size() >= buffer_bytes) {
      file_.write(bytes);
    } else {
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    }
  }
  void flush() {
    if (!buffer_.empty()) file_.write(std::span<const std::byte>(buffer_));
    buffer_.clear();
  }
  /// Calls use(bytes) with what was put, piece by piece.
  template <class Use>
  void replay(const Use& use) {
    flush();
    const File in(file_.path(), Open::read, files_);
    std::vector<std::byte> piece(buffer_bytes);
    for (std::int64_t at = 0; at < in.size();) {
      const auto count = std::min(static_cast<std::int64_t>(buffer_bytes), in.size() - at);
      const auto part = std::span(piece).first(static_cast<std::size_t>(count));
      in.read_at(at, part);
      use(std::span<const std::byte>(part));
      at += count;
    }
  }
  void keep_as(const std::string& path) {
    flush();
    file_.sync();
    file_.close();
    rename_durably(file_.path(), path, files_);
    kept_ = true;
  }

 private:
  File file_;
  const FileSystem& files_;
  std::vector<std::byte> buffer_;
  bool kept_ = false;
};

TokenWriter::TokenWriter(std::string prefix, Options options, const FileSystem& files)
    : prefix_(std::move(prefix)), options_(options), files_(files) {
  const auto open = [&](const char* ending) { return std::make_unique<Stream>(prefix_ + ending, files_); };
  bin_ = open(".bin.partial");
  lengths_ = open(".lengths.partial");
  documents_ = open(".documents.partial");
  if (options_.modes == Modes::wanted) modes_ = open(".modes.partial");
}

TokenWriter::~TokenWriter() = default;

void TokenWriter::put_tokens(std::span<const std::int32_t> tokens) {
  const TokenRange allowed = range(options_.type);
  const auto wrong = std::find_if(tokens.begin(), tokens.end(),
                                  [&](std::int32_t t) { return t < allowed.low || t > allowed.high; });
  if (wrong != tokens.end()) {
    fail(Kind::data, prefix_, ": token ", *wrong, " in document ", num_documents_, " does not fit the type ",
         name(options_.type), ", which holds ", allowed.low, " to ", allowed.high);
  }
  std::vector<std::byte> bytes;
  encode_as(options_.type, tokens, bytes);
  bin_->put(bytes);
  num_tokens_ += static_cast<std::int64_t>(tokens.size());
}

void TokenWriter::put_sequence(std::int64_t length, std::int8_t mode) {
  if (length < 0 || length > std::numeric_limits<std::int32_t>::max()) {
    fail(Kind::data, prefix_, ": a sequence of ", length, " tokens in document ", num_documents_,
         ", the format holds 0 to ", std::numeric_limits<std::int32_t>::max());
  }
  lengths_->put(bytes_of(static_cast<std::int32_t>(length)));
  if (modes_) modes_->put(bytes_of(mode));
  if (mode != 0 && !modes_) fail(Kind::internal, prefix_, ": a mode for a data set that keeps none");
  ++num_sequences_;
}

void TokenWriter::end_document() {
  documents_->put(bytes_of(num_sequences_));
  ++num_documents_;
}

void TokenWriter::add_document(std::span<const std::int32_t> tokens, std::span<const std::int32_t> lengths,
                               std::span<const std::int8_t> modes) {
  std::int64_t sum = 0;
  for (const std::int32_t length : lengths) sum += length;
  if (sum != static_cast<std::int64_t>(tokens.size()) || (!modes.empty() && modes.size() != lengths.size())) {
    fail(Kind::internal, prefix_, ": lengths that sum to ", sum, " and ", modes.size(), " modes for ",
         tokens.size(), " tokens in ", lengths.size(), " sequences");
  }
  put_tokens(tokens);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    put_sequence(lengths[i], modes.empty() ? std::int8_t{0} : modes[i]);
  end_document();
}

void TokenWriter::append(const TokenFile& other) { append_documents(other, 0, other.num_documents()); }

void TokenWriter::append_documents(const TokenFile& other, std::int64_t begin, std::int64_t end) {
  if (other.type() != options_.type) {
    fail(Kind::data, other.prefix(), ": tokens of type ", name(other.type()), ", expected ",
         name(options_.type), " as in ", prefix_);
  }
  for (std::int64_t d = begin; d < end; ++d) {
    const auto [first, last] = other.document(d);
    for (std::int64_t s = first; s < last; ++s) {
      bin_->put(other.raw(s));
      put_sequence(other.length(s), modes_ ? other.mode(s) : std::int8_t{0});
      num_tokens_ += other.length(s);
    }
    end_document();
  }
}

void TokenWriter::write_index(File& out) {
  out.write(index_magic);
  out.write(bytes_of(std::uint64_t{1}));
  out.write(bytes_of(options_.type));
  out.write(bytes_of(num_sequences_));
  out.write(bytes_of(num_documents_ + 1));
  lengths_->replay([&](std::span<const std::byte> piece) { out.write(piece); });
  const auto token_bytes = static_cast<std::int64_t>(width(options_.type));
  std::int64_t at = 0;
  std::vector<std::int64_t> pointers;
  lengths_->replay([&](std::span<const std::byte> piece) {
    const Packed<std::int32_t> lengths(piece);
    pointers.resize(lengths.size());
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      pointers[i] = at;
      at += lengths[i] * token_bytes;
    }
    out.write(std::as_bytes(std::span(pointers)));
  });
  out.write(bytes_of(std::int64_t{0}));
  documents_->replay([&](std::span<const std::byte> piece) { out.write(piece); });
  if (modes_) modes_->replay([&](std::span<const std::byte> piece) { out.write(piece); });
}

void TokenWriter::finish() {
  // The old index goes first: whatever happens from here on, no index lies beside a .bin it does not
  // describe.
  if (std::filesystem::exists(index_path(prefix_))) files_.remove(index_path(prefix_).c_str());
  bin_->keep_as(bin_path(prefix_));
  write_atomically(
      index_path(prefix_), [this](File& out) { write_index(out); }, files_);
  for (auto* stream : {&bin_, &lengths_, &documents_, &modes_}) stream->reset();
}

void merge(std::span<const std::string> prefixes, const std::string& output, Modes modes) {
  if (prefixes.empty()) fail(Kind::usage, "merge: no data sets given");
  const auto open = [&](const std::string& prefix) { return TokenFile(prefix, {.modes = modes}); };
  TokenWriter writer(output, {.type = open(prefixes.front()).type(), .modes = modes});
  for (const std::string& prefix : prefixes) {
    if (prefix == output) fail(Kind::usage, "merge: ", output, " is both an input and the output");
    writer.append(open(prefix));
  }
  writer.finish();
}

std::vector<std::string> prefixes_in(const std::string& folder) {
  std::set<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto ending = entry.path().extension();
    if (!entry.is_regular_file()) continue;
    const std::string stem = (entry.path().parent_path() / entry.path().stem()).string();
    if ((ending != ".bin" && ending != ".idx") || !token_file_exists(stem)) {
      fail(Kind::data, "merge: ", entry.path().string(),
           " is not one half of a pair of .bin and .idx; move it out of the folder");
    }
    stems.insert(stem);
  }
  if (stems.empty()) fail(Kind::data, "merge: ", folder, " holds no .bin and .idx files");
  return {stems.begin(), stems.end()};
}

void split(const std::string& prefix, int parts, const std::string& output) {
  const TokenFile all(prefix);
  if (parts < 1 || parts > all.num_documents()) {
    fail(Kind::usage, "split: ", parts, " parts asked of ", prefix, ", which has ", all.num_documents(),
         " documents");
  }
  for (int part = 0; part < parts; ++part) {
    TokenWriter writer(text(output, '_', part), {.type = all.type()});
    writer.append_documents(all, all.num_documents() * part / parts,
                            all.num_documents() * (part + 1) / parts);
    writer.finish();
  }
}

}  // namespace weft::data
