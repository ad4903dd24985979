#include "weft/data/look_ahead.h"

namespace weft::data {

void look_ahead(const HostBatch& batch, std::int64_t places, bool in_documents, HostBatch& further) {
  const std::vector<std::int32_t>& documents = batch[Field::documents];
  const std::int64_t tokens = std::ssize(batch[Field::tokens]);
  const std::int64_t length = tokens / batch.size();
  const bool apart = in_documents && !documents.empty();
  const auto reaches = [&](std::int64_t at) {
    if (at % length + places >= length) return false;
    return !apart || documents[std::size_t(at)] == documents[std::size_t(at + places)];
  };
  further.samples = batch.samples;
  for (const Field field : {Field::tokens, Field::labels, Field::loss_mask, Field::positions}) {
    const std::vector<std::int32_t>& from = batch[field];
    std::vector<std::int32_t>& to = further[field];
    to.assign(std::size_t(tokens), 0);
    if (from.empty()) continue;
    for (std::int64_t at = 0; at < tokens; ++at)
      if (reaches(at)) to[std::size_t(at)] = from[std::size_t(at + places)];
  }
}

}  // namespace weft::data
