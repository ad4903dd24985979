// Reading PREFIX.bin and PREFIX.idx. Layout of the index: 9 bytes of magic, version, type, two counts, then
// four arrays.
#include "weft/data/token_file.h"

#include <array>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "weft/data/index_bytes.h"

namespace weft::data {
namespace {

void check_header(std::span<const std::byte> bytes, const std::string& who) {
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()),
                               std::min(bytes.size(), index_magic.size()));
  if (begin.starts_with("TNTIDX")) {
    fail(Kind::data, who,
         ": an index of the old lazy or cached kind (TNTIDX), expected the mmap kind; make it again with "
         "weft preprocess");
  }
  if (bytes.size() < index_header_bytes) {
    fail(Kind::data, who, ": ", bytes.size(), " bytes, the header of an index takes ", index_header_bytes,
         "; the file is truncated");
  }
  if (begin != index_magic)
    fail(Kind::data, who, ": does not begin with MMIDIDX, so it is not an index of tokens");
  const auto version = value_at<std::uint64_t>(bytes, 9);
  if (version != 1) fail(Kind::data, who, ": version ", version, ", expected 1");
  const auto code = static_cast<unsigned>(value_at<std::uint8_t>(bytes, 17));
  if (code < 1 || code > 8) fail(Kind::data, who, ": token type code ", code, ", the known codes are 1 to 8");
}

// The counts of the header, once the file is known to be long enough for them.
struct Counts {
  std::size_t sequences, bounds;
};

Counts checked_counts(std::span<const std::byte> bytes, Modes modes, const std::string& who) {
  const auto sequences = value_at<std::uint64_t>(bytes, 18);
  const auto bounds = value_at<std::uint64_t>(bytes, 26);
  const std::uint64_t room = bytes.size() - index_header_bytes;
  const std::uint64_t each = modes == Modes::wanted ? 13 : 12;
  // Division first: a lying count must not overflow the sum that would expose it.
  if (sequences > room / each || bounds > (room - sequences * each) / 8) {
    fail(Kind::data, who, ": claims ", sequences, " sequences and ", bounds, " document bounds",
         modes == Modes::wanted ? " with modes" : "", ", but holds only ", bytes.size(),
         " bytes; the file is truncated or damaged");
  }
  if (bounds == 0) fail(Kind::data, who, ": no document bounds, expected at least the first one");
  return {static_cast<std::size_t>(sequences), static_cast<std::size_t>(bounds)};
}

void check_ends(const TokenIndex& index, std::int64_t bin_bytes, const std::string& who) {
  const std::size_t sequences = index.lengths.size();
  const auto last_bound = index.documents[index.documents.size() - 1];
  if (index.documents[0] != 0)
    fail(Kind::data, who, ": the first document begins at sequence ", index.documents[0], ", expected 0");
  if (last_bound != static_cast<std::int64_t>(sequences)) {
    fail(Kind::data, who, ": the last document ends at sequence ", last_bound, ", but there are ", sequences,
         " sequences");
  }
  std::int64_t end = 0;
  if (sequences > 0) {
    const std::int64_t length = index.lengths[sequences - 1];
    const std::int64_t at = index.pointers[sequences - 1];
    if (index.pointers[0] != 0)
      fail(Kind::data, who, ": the first sequence begins at byte ", index.pointers[0], ", expected 0");
    if (length < 0 || at < 0)
      fail(Kind::data, who, ": the last sequence has length ", length, " and begins at byte ", at,
           "; the file is damaged");
    const std::int64_t bytes = length * static_cast<std::int64_t>(width(index.type));
    end = at > std::numeric_limits<std::int64_t>::max() - bytes ? -1 : at + bytes;
  }
  if (end != bin_bytes) {
    fail(Kind::data, who, ": accounts for ", end, " bytes of tokens, but the .bin beside it holds ",
         bin_bytes, "; they are not of one run, or one is truncated");
  }
}

// The same path, once it is known to be a file.
std::string existing(std::string path, const std::string& prefix) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return path;
  const bool has_ending = prefix.ends_with(".bin") || prefix.ends_with(".idx");
  fail(Kind::data, path, ": no such file",
       "; a data set is a prefix with two files, PREFIX.idx and PREFIX.bin",
       has_ending ? ": give it without its ending" : "");
}

template <class T>
void widen(std::span<const std::byte> from, std::span<std::int32_t> to) {
  const Packed<T> values(from);
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): its bytes are numbers
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::int32_t>(values[i]);
}

// Types that hold more than an id can be, fractions among it: true where every value is one.
template <class T>
bool narrow_all(std::span<const std::byte> from, std::span<std::int32_t> to) {
  const Packed<T> values(from);
  bool fits = true;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const T value = values[i];
    const bool in_range = value >= static_cast<T>(-2147483648LL) && value < static_cast<T>(2147483648LL);
    to[i] = in_range ? static_cast<std::int32_t>(value) : 0;
    fits = fits && in_range && static_cast<T>(to[i]) == value;
  }
  return fits;
}

bool decode(TokenType type, std::span<const std::byte> from, std::span<std::int32_t> to) {
  switch (type) {
    case TokenType::u8:
      return widen<std::uint8_t>(from, to), true;
    case TokenType::i8:
      return widen<std::int8_t>(from, to), true;
    case TokenType::i16:
      return widen<std::int16_t>(from, to), true;
    case TokenType::u16:
      return widen<std::uint16_t>(from, to), true;
    case TokenType::i32:
      return widen<std::int32_t>(from, to), true;
    case TokenType::i64:
      return narrow_all<std::int64_t>(from, to);
    case TokenType::f64:
      return narrow_all<double>(from, to);
    case TokenType::f32:
      return narrow_all<float>(from, to);
  }
  return false;
}

}  // namespace

std::size_t width(TokenType type) {
  constexpr std::array<std::size_t, 9> widths = {0, 1, 1, 2, 4, 8, 8, 4, 2};
  return widths[static_cast<std::size_t>(type)];
}

std::string_view name(TokenType type) {
  constexpr std::array<std::string_view, 9> names = {"",    "u8",  "i8",  "i16", "i32",
                                                     "i64", "f64", "f32", "u16"};
  return names[static_cast<std::size_t>(type)];
}

TokenType token_type_for(std::optional<std::int64_t> vocabulary) {
  return vocabulary && *vocabulary < 65500 ? TokenType::u16 : TokenType::i32;
}

TokenRange range(TokenType type) {
  constexpr std::int64_t exact_f32 = std::int64_t{1} << 24;
  constexpr TokenRange i32 = {std::numeric_limits<std::int32_t>::min(),
                              std::numeric_limits<std::int32_t>::max()};
  constexpr std::array<TokenRange, 9> ranges = {
      {{0, 0}, {0, 255}, {-128, 127}, {-32768, 32767}, i32, i32, i32, {-exact_f32, exact_f32}, {0, 65535}}};
  return ranges[static_cast<std::size_t>(type)];
}

std::string index_path(std::string_view prefix) { return std::string(prefix) + ".idx"; }
std::string bin_path(std::string_view prefix) { return std::string(prefix) + ".bin"; }

bool token_file_exists(std::string_view prefix) {
  return std::filesystem::exists(index_path(prefix)) && std::filesystem::exists(bin_path(prefix));
}

TokenIndex parse_index(std::span<const std::byte> bytes, std::int64_t bin_bytes, const std::string& who,
                       Modes modes) {
  check_header(bytes, who);
  const Counts counts = checked_counts(bytes, modes, who);
  auto rest = bytes.subspan(index_header_bytes);
  const auto take = [&rest](std::size_t count) {
    const auto part = rest.first(count);
    rest = rest.subspan(count);
    return part;
  };
  TokenIndex index;
  index.type = static_cast<TokenType>(value_at<std::uint8_t>(bytes, 17));
  index.lengths = Packed<std::int32_t>(take(4 * counts.sequences));
  index.pointers = Packed<std::int64_t>(take(8 * counts.sequences));
  index.documents = Packed<std::int64_t>(take(8 * counts.bounds));
  if (modes == Modes::wanted) index.modes = Packed<std::int8_t>(take(counts.sequences));
  check_ends(index, bin_bytes, who);
  return index;
}

TokenFile::TokenFile(std::string prefix, Options options)
    : prefix_(std::move(prefix)),
      access_(options.access),
      index_file_(existing(index_path(prefix_), prefix_)) {
  bin_bytes_ = static_cast<std::int64_t>(std::filesystem::file_size(existing(bin_path(prefix_), prefix_)));
  index_ = parse_index(index_file_.bytes(), bin_bytes_, index_path(prefix_), options.modes);
  if (access_ == Access::mapped) {
    bin_.emplace(bin_path(prefix_));
  } else {
    bin_file_.emplace(bin_path(prefix_), Open::read);
  }
}

TokenFile::Extent TokenFile::extent(std::int64_t sequence) const {
  if (sequence < 0 || sequence >= num_sequences()) {
    fail(Kind::data, index_path(prefix_), ": sequence ", sequence, " asked for, there are ", num_sequences());
  }
  const Extent e{index_.pointers[static_cast<std::size_t>(sequence)],
                 index_.lengths[static_cast<std::size_t>(sequence)]};
  const auto bytes = e.length * static_cast<std::int64_t>(width(index_.type));
  if (e.length < 0 || e.at < 0 || e.at > bin_bytes_ - bytes) {
    fail(Kind::data, index_path(prefix_), ": sequence ", sequence, " has length ", e.length,
         " and begins at byte ", e.at, " of ", bin_bytes_, "; the file is damaged");
  }
  return e;
}

std::int64_t TokenFile::length(std::int64_t sequence) const { return extent(sequence).length; }

std::int8_t TokenFile::mode(std::int64_t sequence) const {
  extent(sequence);
  return index_.modes.size() == 0 ? std::int8_t{0} : index_.modes[static_cast<std::size_t>(sequence)];
}

TokenFile::Sequences TokenFile::document(std::int64_t number) const {
  if (number < 0 || number >= num_documents()) {
    fail(Kind::data, index_path(prefix_), ": document ", number, " asked for, there are ", num_documents());
  }
  const Sequences s{index_.documents[static_cast<std::size_t>(number)],
                    index_.documents[static_cast<std::size_t>(number) + 1]};
  if (s.begin < 0 || s.end < s.begin || s.end > num_sequences()) {
    fail(Kind::data, index_path(prefix_), ": document ", number, " is the sequences from ", s.begin, " to ",
         s.end, " of ", num_sequences(), "; the file is damaged");
  }
  return s;
}

void TokenFile::read(std::int64_t sequence, std::int64_t from, std::span<std::int32_t> to) const {
  const Extent e = extent(sequence);
  const auto count = static_cast<std::int64_t>(to.size());
  if (from < 0 || from > e.length - count) {
    fail(Kind::data, prefix_, ": ", count, " tokens from ", from, " asked of sequence ", sequence,
         ", which has ", e.length);
  }
  const auto token_bytes = static_cast<std::int64_t>(width(index_.type));
  const std::int64_t at = e.at + from * token_bytes;
  bool fits = false;
  if (access_ == Access::mapped) {
    fits = decode(index_.type, bin_->bytes(at, count * token_bytes), to);
  } else {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * token_bytes));
    bin_file_->read_at(at, bytes);
    fits = decode(index_.type, bytes, to);
  }
  if (!fits) {
    fail(Kind::data, bin_path(prefix_), ": sequence ", sequence, " holds values of type ", name(index_.type),
         " that no 32-bit token id can be");
  }
}

std::span<const std::byte> TokenFile::raw(std::int64_t sequence) const {
  if (!bin_) fail(Kind::internal, prefix_, ": raw() of a file that is not mapped");
  const Extent e = extent(sequence);
  return bin_->bytes(e.at, e.length * static_cast<std::int64_t>(width(index_.type)));
}

void TokenFile::verify() const {
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < num_sequences(); ++i) {
    const Extent e = extent(i);
    if (e.at != at) {
      fail(Kind::data, index_path(prefix_), ": sequence ", i, " begins at byte ", e.at,
           ", the lengths before it say ", at);
    }
    at += e.length * static_cast<std::int64_t>(width(index_.type));
  }
  for (std::int64_t d = 0; d < num_documents(); ++d) document(d);
}

}  // namespace weft::data
