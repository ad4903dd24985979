// Opening data sets of conversations: each file once, whichever splits and blends read it.
#include <map>
#include <mutex>
#include <utility>

#include "weft/base/error.h"
#include "weft/data/open.h"

namespace weft::data {
namespace {

class OpenFiles {
 public:
  std::shared_ptr<const LineFile> of(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    auto& file = files_[path];
    if (file == nullptr) file = std::make_shared<const LineFile>(path);
    if (file->size() == 0) fail(Kind::data, path, ": holds no conversation");
    return file;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const LineFile>> files_;
};

class ConversationMembers final : public Members {
 public:
  ConversationMembers(const DataRequest& request, const ConversationRules& rules, OpenFiles& files,
                      Portions portions)
      : request_(request), rules_(rules), files_(files), portions_(std::move(portions)) {}

  Member of(const std::string& path, SamplesWanted size) const override {
    auto file = files_.of(path);
    const Range lines = documents_of(portions_, file->size(), text(path, ' ', name(portions_.split)), size);
    ConversationOrder order{.lines = lines, .samples = size.value_or(lines.size())};
    if (request_.order == DataOrder::keyed) order.shuffled = request_.seed;
    return {std::make_shared<ConversationDataset>(std::move(file), order, rules_), identity_of(path, size)};
  }
  Member made_up(SamplesWanted) const override {
    fail(Kind::usage, "{data.mock}: no conversations are made up: give {data.paths}");
  }

 private:
  Identity identity_of(const std::string& path, SamplesWanted size) const {
    return {.kind = "SFTDataset",
            .path = path,
            .num_samples = size,
            .split = portions_.split,
            .seed = request_.seed,
            .sequence_length = rules_.sequence_length,
            .split_text = portions_.text,
            .matrix = portions_.matrix,
            .tokenizer = request_.tokenizer};
  }

  const DataRequest& request_;
  const ConversationRules& rules_;
  OpenFiles& files_;
  Portions portions_;
};

}  // namespace

Datasets open_conversation_datasets(const DataRequest& request, const ConversationRules& rules) {
  OpenFiles files;
  return open_datasets(request, [&](const Portions& portions) {
    return std::make_unique<ConversationMembers>(request, rules, files, portions);
  });
}

}  // namespace weft::data
