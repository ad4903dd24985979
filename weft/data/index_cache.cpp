#include "weft/data/index_cache.h"

#include <future>
#include <utility>

#include "weft/base/error.h"
#include "weft/data/cache_file.h"
#include "weft/data/md5.h"
#include "weft/data/npy.h"

namespace weft::data {

std::filesystem::path default_cache_folder(const std::string& prefix, const std::string& kind) {
  return std::filesystem::path(prefix) / "cache" / (kind + "_indices");
}

IndexCache::IndexCache(std::filesystem::path folder, const Identity& identity)
    : folder_(std::move(folder)),
      description_(describe(identity)),
      name_(text(md5_hex(description_), '-', identity.kind, '-', name(identity.split), '-')) {}

std::filesystem::path IndexCache::path(const char* ending) const { return folder_ / (name_ + ending); }

std::optional<GptIndex> IndexCache::find() const {
  for (const char* ending :
       {"description.txt", "document_index.npy", "sample_index.npy", "shuffle_index.npy"}) {
    if (!std::filesystem::exists(path(ending))) return std::nullopt;
  }
  GptIndex index{read_npy<std::int32_t>(path("document_index.npy")),
                 read_npy<std::int32_t>(path("sample_index.npy"), 2),
                 read_npy<std::uint32_t>(path("shuffle_index.npy"))};
  const std::size_t rows = index.samples.size() / 2;
  if (rows != index.shuffle.size() + 1) {
    fail(Kind::data, path("sample_index.npy").string(), ": ", rows, " rows for ", index.shuffle.size(),
         " samples, expected one more; remove the cache");
  }
  return index;
}

GptIndex IndexCache::build(const Packed<std::int32_t>& lengths, Range range, const Order& order,
                           const Epochs& epochs) const {
  check_index_size(range, epochs);
  make_cache_folder(folder_);
  auto shuffle = std::async(std::launch::async, [&] {
    write_npy(path("shuffle_index.npy"), shuffled_samples(range, epochs, order.seed).values());
  });
  const auto documents = shuffled_documents(range, epochs, order.seed);
  write_cache_file(path("sample_index.npy"), [&](File& out) {
    out.write(npy_header("<i4", epochs.samples + 1, 2));
    cut_samples(lengths, documents.values(), order, epochs,
                [&](auto rows) { out.write(std::as_bytes(rows)); });
  });
  write_npy(path("document_index.npy"), documents.values());
  shuffle.get();
  write_cache_file(path("description.txt"), std::string_view(description_));
  auto index = find();
  if (!index)
    fail(Kind::data, path("description.txt").string(),
         ": gone as soon as it was written; does another run clean this folder?");
  return std::move(*index);
}

}  // namespace weft::data
