// How a family's models stand in Hugging Face directories, as plain values: the exchange room reads and
// writes by them.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/model/config.h"
#include "weft/tensor/shape.h"

namespace weft {

class HubSettings;

/// One of their tensors. Turned ones are stored [in, out] where we have [out, in].
struct Theirs {
  std::string name;
  Shape shape;  // as they store it
  bool turned = false;
  bool always_f32 = false;        // whatever type the others are stored in
  std::string_view copy_of = {};  // beside recipes: the parameter that it holds once more, all of it
  /// Which of the slabs of a tensor, one for each index of its first dimension; none: it is all of it.
  std::optional<std::int64_t> slab = {};
  std::int64_t first_row = 0;  // of theirs, or of the slab, where what is meant begins: of what is only read
  bool flat = false;           // its elements are our rows, whatever its shape
  std::int64_t rows() const { return flat ? elements() : shape[(slab ? 1 : 0) + (turned ? 1 : 0)]; }
  std::int64_t elements() const { return slab ? shape.elements() / shape[0] : shape.elements(); }
};

/// Rows [to, to + count) of ours are rows from, from + step, … of theirs[part].
struct RowRun {
  std::size_t part = 0;
  std::int64_t from = 0, to = 0, count = 0, step = 1;
};

/// The runs fill ours in ascending order of `to`, and use every row of every part once.
struct Recipe {
  std::string name;  // ours
  Shape shape;
  std::vector<Theirs> parts;
  std::vector<RowRun> runs;
  double plus = 0;  // theirs = ours + plus: a gain that we store around zero

  /// Rows lie along all dimensions but the last.
  std::int64_t columns() const { return shape.rank() < 2 ? 1 : shape[shape.rank() - 1]; }
};

/// A tensor that they may store although it is another one of ours, which both must then hold.
struct StoredTwice {
  std::string_view theirs, ours;  // "*.a" are all whose names end in ".a"
  bool names(std::string_view one) const {
    return theirs.starts_with('*') ? one.ends_with(theirs.substr(1)) : one == theirs;
  }
};

/// A "model_type" of which a model of text is one part, whose settings lie under "text_config".
struct HubWrapper {
  std::string_view type, text;  // text: the part's own type, where it does not say
};

/// Whether a model's files hold a tensor of that name.
using IsStored = std::function<bool(const std::string& their_name)>;

/// A type is a word of config.json's "model_type": how tensors are called, which settings go without saying.
struct HubSpelling {
  std::span<const std::string_view> types;
  /// What config.json says; HubSettings refuse what weft cannot compute.
  void (*read)(ModelConfig&, HubSettings&, std::string_view type);
  /// The plainest type that has all of a model's features. Fails with Kind::usage, saying which one none has.
  std::string_view (*type_for)(const ModelConfig&);
  nlohmann::ordered_json (*write)(const ModelConfig&, std::string_view type);
  /// Every tensor of the family's list, in its order.
  std::vector<Recipe> (*recipes)(const ModelConfig&, std::string_view type);
  /// Of these, what they may store once more.
  std::span<const StoredTwice> twice;
  /// Whether a tensor that no recipe names is a table that old programs saved and none needs.
  bool (*known_table)(std::string_view their_name);
  /// The same model in one way of saying it: what has no effect is as it was built in.
  ModelConfig (*plainly)(ModelConfig);
  /// Tensors that they cannot do without and no recipe names, written as copies, or as zeros where the model
  /// has none; null: there are none.
  std::vector<Theirs> (*beside)(const ModelConfig&) = nullptr;
  /// Whether a tensor that no recipe names is of a part that weft does not make, and that transformers passes
  /// over as well; null: none is.
  bool (*unmade_part)(std::string_view type, std::string_view their_name) = nullptr;
  /// What config.json says in two ways and the names of the tensors beside it in one; null: nothing.
  void (*settle)(ModelConfig&, const IsStored&) = nullptr;
  /// What other programs, or other versions, store a tensor as: the first of them that is there counts where
  /// the tensor itself is not; null: there are none.
  std::vector<Theirs> (*other_ways)(const ModelConfig&, const Theirs&) = nullptr;
  std::span<const HubWrapper> wrappers = {};
  /// Of a wrapper's tensors: what one is called where the model of text stands alone; empty: it is no part of
  /// that.
  std::string (*text_name)(std::string_view their_name) = nullptr;
};

}  // namespace weft
