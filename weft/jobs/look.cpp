#include "weft/jobs/look.h"

#include <charconv>

#include "weft/base/format.h"

namespace weft::jobs {

const Tree* at(const Tree& from, std::string_view path) {
  const Tree* out = &from;
  for (const std::string_view key : split(path, '/'))
    if (out->is != Tree::Is::map || (out = out->find(key)) == nullptr) return nullptr;
  return out;
}

std::string word_at(const Tree& from, std::string_view path) {
  const Tree* found = at(from, path);
  return found != nullptr && found->is == Tree::Is::word ? found->text : "";
}

std::int64_t number_at(const Tree& from, std::string_view path) {
  const std::string said = word_at(from, path);
  std::int64_t out = 0;
  std::from_chars(said.data(), said.data() + said.size(), out);
  return out;
}

std::vector<const Tree*> items_at(const Tree& from, std::string_view path) {
  std::vector<const Tree*> out;
  if (const Tree* found = at(from, path); found != nullptr && found->is == Tree::Is::list)
    for (const Tree& one : found->items) out.push_back(&one);
  return out;
}

}  // namespace weft::jobs
