#include "weft/text/vocabulary.h"

#include "weft/base/error.h"

namespace weft {

void Vocabulary::set(const std::string& token, std::int64_t id, std::string_view who) {
  if (id < 0 || id >= most) {
    fail(Kind::data, who, ": token '", token, "' has id ", id, ", expected 0 to ", most - 1);
  }
  const auto at = static_cast<std::size_t>(id);
  if (at >= tokens_.size()) {
    tokens_.resize(at + 1);
    named_.resize(at + 1);
  }
  tokens_[at] = token;
  named_[at] = true;
  ids_[token] = static_cast<std::int32_t>(id);
}

std::optional<std::int32_t> Vocabulary::id(std::string_view token) const {
  const auto at = ids_.find(token);
  return at == ids_.end() ? std::nullopt : std::optional(at->second);
}

bool Vocabulary::names(std::int32_t id) const {
  return id >= 0 && static_cast<std::size_t>(id) < named_.size() && named_[static_cast<std::size_t>(id)];
}

const std::string& Vocabulary::token(std::int32_t id) const {
  return names(id) ? tokens_[static_cast<std::size_t>(id)] : nothing_;
}

}  // namespace weft
