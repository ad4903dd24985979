#include "weft/data/source.h"

#include <utility>

#include "weft/base/error.h"
#include "weft/data/numpy_random.h"

namespace weft::data {
namespace {

class FileSource : public Source {
 public:
  explicit FileSource(std::shared_ptr<const TokenFile> file) : file_(std::move(file)) {}
  const std::string& name() const override { return file_->prefix(); }
  Packed<std::int32_t> lengths() const override { return file_->index().lengths; }
  std::int64_t length(std::int64_t sequence) const override { return file_->length(sequence); }
  void read(std::int64_t sequence, std::int64_t from, std::span<std::int32_t> to) const override {
    file_->read(sequence, from, to);
  }
  std::int64_t tokens_before(std::int64_t sequence) const override {
    if (sequence == file_->num_sequences()) return file_->num_tokens();
    const auto& pointers = file_->index().pointers;
    return pointers[static_cast<std::size_t>(sequence)] / static_cast<std::int64_t>(width(file_->type()));
  }

 private:
  std::shared_ptr<const TokenFile> file_;
};

class MockSource : public Source {
 public:
  MockSource(std::int32_t vocabulary, std::int32_t eod)
      : vocabulary_(vocabulary), eod_(eod), lengths_(100000) {
    if (vocabulary < 1)
      fail(Kind::usage, "{data.mock}: a vocabulary of ", vocabulary, " tokens, expected at least 1");
    NumpyPcg64 random(0);
    for (auto& length : lengths_) length = random.integer(1, 4096);
    begins_.reserve(lengths_.size() + 1);
    begins_.push_back(0);
    for (const auto length : lengths_) begins_.push_back(begins_.back() + length);
  }
  const std::string& name() const override { return name_; }
  Packed<std::int32_t> lengths() const override {
    return Packed<std::int32_t>(std::as_bytes(std::span(lengths_)));
  }
  std::int64_t length(std::int64_t sequence) const override {
    return lengths_.at(static_cast<std::size_t>(sequence));
  }
  void read(std::int64_t sequence, std::int64_t from, std::span<std::int32_t> to) const override {
    const std::int64_t end = length(sequence);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::int64_t at = from + static_cast<std::int64_t>(i) + 1;
      to[i] = at == end ? eod_ : static_cast<std::int32_t>(at % vocabulary_);
    }
  }
  std::int64_t tokens_before(std::int64_t sequence) const override {
    return begins_.at(static_cast<std::size_t>(sequence));
  }

 private:
  std::string name_ = "mock data";
  std::int32_t vocabulary_, eod_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> begins_;
};

}  // namespace

std::shared_ptr<const Source> open_source(std::string prefix, TokenFile::Options options) {
  return source_of(std::make_shared<const TokenFile>(std::move(prefix), options));
}

std::shared_ptr<const Source> source_of(std::shared_ptr<const TokenFile> file) {
  return std::make_shared<const FileSource>(std::move(file));
}

std::shared_ptr<const Source> mock_source(std::int32_t vocabulary, std::int32_t eod) {
  return std::make_shared<const MockSource>(vocabulary, eod);
}

}  // namespace weft::data
