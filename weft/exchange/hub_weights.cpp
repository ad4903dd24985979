// Every tensor of a directory is accounted for before any is read.
#include "weft/exchange/hub_weights.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/exchange/mxfp4.h"
#include "weft/model/kinds.h"

namespace weft::exchange {
namespace {

/// What names of weights in four bits end with.
constexpr const char *codes_end = "_blocks", *scales_end = "_scales";
/// And of the scales of weights in eight bits, whose codes stand in the weight's place.
constexpr const char* block_scales_end = "_scale_inv";

// Old GPT-2 files leave the first word of their names out.
std::string short_name(const std::string& name) {
  return name.starts_with("transformer.") ? name.substr(std::strlen("transformer.")) : name;
}

// Of the first BERTs, whose norms' gains and biases have Greek names.
std::string old_name(const std::string& name) {
  for (const auto& [now, then] :
       {std::pair{"LayerNorm.weight", "gamma"}, std::pair{"LayerNorm.bias", "beta"}})
    if (name.ends_with(now)) return name.substr(0, name.rfind('.') + 1) + then;
  return name;
}

// Of BERTs with an output of their own, from versions in which two biases were one.
std::string shared_name(const std::string& name) {
  return name == "cls.predictions.decoder.bias" ? "cls.predictions.bias" : name;
}

/// Where a tensor is found, under whichever of its names; `theirs` is then what it is called there.
const checkpoint::Entry* find_as(const HubSource& tensors, const ModelConfig& model, Theirs& theirs) {
  const checkpoint::Entry* entry = tensors.find(theirs.name);
  for (const std::string& other : {short_name(theirs.name), old_name(theirs.name), shared_name(theirs.name)})
    if (entry == nullptr && (entry = tensors.find(other)) != nullptr) theirs.name = other;
  if (const auto others = kind_of(model).hub.other_ways; entry == nullptr && others != nullptr)
    for (const Theirs& other : others(model, theirs))
      if (entry == nullptr && (entry = tensors.find(other.name)) != nullptr) theirs = other;
  return entry;
}

/// What stands beside weights is laid out as they are, and is no gain, so nothing is added to it.
std::vector<Recipe> recipes_of(const HubSource& tensors, const HubConfig& config, const std::string& ending) {
  std::vector<Recipe> all = recipes(config.type, config.model);
  if (ending.empty()) return all;
  std::erase_if(all, [&](const Recipe& recipe) {
    return std::ranges::none_of(
        recipe.parts, [&](Theirs theirs) { return find_as(tensors, config.model, theirs) != nullptr; });
  });
  for (Recipe& recipe : all) {
    recipe.name += ending;
    recipe.plus = 0;
  }
  return all;
}

}  // namespace

HubWeights::HubWeights(const std::filesystem::path& directory, const HubConfig& config)
    : HubWeights(std::make_shared<const HubTensors>(directory, text_name(config)), config) {}

HubWeights::HubWeights(std::shared_ptr<const HubSource> tensors, const HubConfig& config, std::string ending)
    : TheirWeights(tensors->who(), recipes_of(*tensors, config, ending)),
      tensors_(std::move(tensors)),
      ending_(std::move(ending)),
      blocks_(config.blocks) {
  account_for(config);
}

void HubWeights::account_for(const HubConfig& config) {
  const std::string where = tensors_->who();
  const ModelKind kind = kind_of(config.model);
  std::set<std::string> used;
  for (Recipe& recipe : recipes_)
    for (Theirs& theirs : recipe.parts) {
      check_part(recipe, theirs, config.model);
      for (const std::string& name : stored_as(theirs)) used.insert(name);
    }
  std::vector<std::string> unmade = tensors_->others();
  for (const std::string& name : tensors_->names()) {
    if (used.contains(name) || kind.hub.known_table(name)) continue;
    if (kind.hub.unmade_part != nullptr && kind.hub.unmade_part(config.type, name)) {
      unmade.push_back(name);
      continue;
    }
    const auto tied = std::ranges::find_if(kind.hub.twice, [&](const StoredTwice& one) {
      return one.names(name) && places_.contains(std::string(one.ours) + ending_);
    });
    if (tied != kind.hub.twice.end()) {
      check_tied(name, std::string(tied->ours) + ending_);
      continue;
    }
    fail(Kind::data, where, ": holds ", name, ", which is no part of a ", config.type, " model of ",
         config.model.layers, " layers");
  }
  if (!unmade.empty())
    notices_.push_back(text(where, ": ", unmade.front(), " and ", unmade.size() - 1,
                            " more tensors are of a part that weft does not make: they are passed over"));
}

bool HubWeights::check_packed(const Theirs& theirs) {
  const checkpoint::Entry* codes = tensors_->find(theirs.name + codes_end);
  const checkpoint::Entry* scales = tensors_->find(theirs.name + scales_end);
  if (codes == nullptr || scales == nullptr || !theirs.slab) return false;
  const std::int64_t rows = theirs.rows(), columns = theirs.elements() / rows;
  const Shape blocks{theirs.shape[0], rows, columns / mxfp4_block};
  const Shape bytes{blocks[0], blocks[1], blocks[2], mxfp4_bytes};
  if (columns % mxfp4_block != 0 || codes->shape != bytes || scales->shape != blocks)
    fail(Kind::data, tensors_->who(), ": ", codes->name, " is ", codes->shape, " and ", scales->name, ' ',
         scales->shape, ", its config.json asks for ", bytes, " and ", blocks);
  if (codes->dtype != Dtype::u8 || scales->dtype != Dtype::u8)
    fail(Kind::data, tensors_->who(), ": ", codes->name, " and ", scales->name, " are of ",
         name(codes->dtype), " and ", name(scales->dtype), ", expected u8");
  packed_.insert(theirs.name);
  return true;
}

bool HubWeights::is_coded(const Theirs& theirs) const {
  const checkpoint::Entry* entry = tensors_->find(theirs.name);
  return blocks_ && entry != nullptr && entry->dtype == Dtype::f8e4m3;
}

void HubWeights::check_coded(const Theirs& theirs) const {
  const std::string where = tensors_->who();
  const checkpoint::Entry* scales = tensors_->find(theirs.name + block_scales_end);
  if (theirs.turned || theirs.slab || theirs.shape.rank() != 2)
    fail(Kind::data, where, ": ", theirs.name, " is in eight bits, and weft reads those of matrices alone");
  if (scales == nullptr)
    fail(Kind::data, where, ": lacks ", theirs.name, block_scales_end, ", by which ", theirs.name,
         " is scaled");
  const Shape wanted = blocks_->scales_of(theirs.shape);
  if (scales->shape != wanted || !is_float(scales->dtype))
    fail(Kind::data, where, ": ", scales->name, " is ", scales->shape, " of ", name(scales->dtype),
         ", expected ", wanted, " of f32, bf16 or f16: one for ", blocks_->rows, " x ", blocks_->columns);
}

std::vector<std::string> HubWeights::stored_as(const Theirs& theirs) const {
  if (is_coded(theirs)) return {theirs.name, theirs.name + block_scales_end};
  if (!packed_.contains(theirs.name)) return {theirs.name};
  return {theirs.name + codes_end, theirs.name + scales_end};
}

void HubWeights::check_part(const Recipe& recipe, Theirs& theirs, const ModelConfig& model) {
  const std::string where = tensors_->who();
  const checkpoint::Entry* entry = find_as(*tensors_, model, theirs);
  if (entry == nullptr && (packed_.contains(theirs.name) || check_packed(theirs))) return;
  if (entry == nullptr)
    fail(Kind::data, where, ": lacks ", theirs.name, ", which ", recipe.name, " is made of");
  if (entry->shape != theirs.shape)
    fail(Kind::data, where, ": ", theirs.name, " is ", entry->shape, ", its config.json asks for ",
         theirs.shape);
  if (is_coded(theirs)) return check_coded(theirs);
  if (!is_float(entry->dtype))
    fail(Kind::data, where, ": ", theirs.name, " is of ", name(entry->dtype), ", expected f32, bf16 or f16");
}

// A tied output that is stored all the same must be the embedding, and so must what further tokens read.
void HubWeights::check_tied(const std::string& theirs, const std::string& ours) const {
  const std::string& once = at(ours).parts.front().name;
  if (!tensors_->same(once, theirs))
    fail(Kind::data, tensors_->who(), ": its config.json ties ", theirs, " to the ",
         ours == "output.words" + ending_ ? "output" : "embedding", ", and they differ");
}

// Four bits and a power of two are a bf16, and what is published in eight is meant to be computed in it.
Dtype HubWeights::dtype_of_part(const Theirs& theirs) const {
  return packed_.contains(theirs.name) || is_coded(theirs) ? Dtype::bf16 : tensors_->find(theirs.name)->dtype;
}

void HubWeights::read_coded(const Theirs& theirs, std::int64_t row, std::int64_t column,
                            std::span<float> to) const {
  const std::string scales = theirs.name + block_scales_end;
  const std::int64_t columns = theirs.shape[1], across = divide_up(columns, blocks_->columns);
  std::vector<float> of_row(static_cast<std::size_t>(across));
  widen(tensors_->bytes(scales), tensors_->find(scales)->dtype, {row / blocks_->rows * across, 1, across},
        of_row.data());
  const auto codes = tensors_->bytes(theirs.name).subspan(std::size_t(row * columns), std::size_t(columns));
  unpack_codes({codes, of_row}, column, blocks_->columns, to);
}

void HubWeights::read_row(const Theirs& theirs, std::int64_t row, std::int64_t column,
                          std::span<float> to) const {
  const std::int64_t rows = theirs.rows(), columns = theirs.elements() / rows;
  const std::int64_t slab = theirs.slab.value_or(0) * theirs.elements();
  row += theirs.first_row;
  if (is_coded(theirs)) return read_coded(theirs, row, column, to);
  if (packed_.contains(theirs.name))
    return unpack_mxfp4(tensors_->bytes(theirs.name + codes_end), tensors_->bytes(theirs.name + scales_end),
                        slab + row * columns + column, to);
  const Walk walk = theirs.turned ? Walk{slab + column * rows + row, rows, std::ssize(to)}
                                  : Walk{slab + row * columns + column, 1, std::ssize(to)};
  tensors_->read(theirs.name, walk, to.data());
}

}  // namespace weft::exchange
