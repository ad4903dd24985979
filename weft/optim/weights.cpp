// Sorting parameters into blocks, cutting the blocks into buckets and shares, and naming what lies where.
#include "weft/optim/weights.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/fragments.h"
#include "weft/optim/shelf.h"
#include "weft/optim/under_way.h"

namespace weft {
namespace {

constexpr std::int64_t slot_unit = 16;  // elements of f32 in 64 bytes

/// Axes along which there is more than one rank.
Axes used(Axes some, const ProcessMesh* mesh) {
  Axes out;
  for (int axis = 0; mesh != nullptr && axis < axes; ++axis)
    if (some.holds(Axis(axis)) && mesh->layout().degree(Axis(axis)) > 1) out = out | Axis(axis);
  return out;
}

// Where gradients are cut, when a bucket leaves says in which order its sums are added: ranks that hold
// copies must not have them in different company, be it that one counts them beside what it holds alone.
WeightKind kind_of(const Parameter& parameter, View view, const ProcessMesh* mesh) {
  const bool counted = std::all_of(parameter.pieces.begin(), parameter.pieces.end(),
                                   [](const Piece& piece) { return piece.where.replica == 0; });
  return {.decays = parameter.decays,
          .role = parameter.role,
          .pace = parameter.pace,
          .counted = counted || parameter.shared.ranks > 1,
          .copies = used(parameter.spread.copy & model_axes(view), mesh),
          .partial = parameter.spread.partial - data_axes(view),
          .view = view,
          .shared = parameter.shared};
}

void must_be_whole(const Parameter& parameter) {
  std::int64_t here = 0;
  for (const Piece& piece : parameter.pieces) here += piece.where.local.elements();
  if (!parameter.pieces.empty() && here != parameter.pieces.front().where.global.elements())
    fail(Kind::internal, parameter.name, ": a part of it is here, and no mesh says who holds the rest");
}

std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return divide_up(n, unit) * unit; }

std::int64_t stored(const WeightSlot& slot) {
  return rounded_up(slot.parameter->shape.elements(), slot_unit);
}

}  // namespace

Weights::Weights(const std::function<void(const VisitParameter&)>& each, Device& device, Dtype compute,
                 For purpose, const DataParallel& data)
    : device_(device), data_(data) {
  if (data.offload != nullptr && purpose == For::training) {
    shelf_ = std::make_unique<Shelf>(device, *data.offload);
    in_files_ = data.offload->weights;
  }
  data_.offload = nullptr;
  std::vector<const Parameter*> tied;
  each([&](const Parameter& parameter) {
    if (purpose == For::training && data_.mesh == nullptr) must_be_whole(parameter);
    if (parameter.tied) tied.push_back(&parameter);
  });
  ties_.emplace(tied, data_.mesh);
  for (const View view : {View::dense, View::experts})  // in one order on all ranks
    if (data_.mesh != nullptr && data_.mesh->layout().has(view)) (void)readers_of(view);
  each([this](Parameter& parameter) { place(parameter); });
  for (WeightBlock& block : blocks_) {
    cut_into_buckets(block);
    share_out(block);
    allocate(block, compute, purpose);
  }
  if (shelf_) put_on_shelf();
}

Weights::~Weights() = default;

// Masters are the first that is kept, so that they can be walked alone.
void Weights::put_on_shelf() {
  std::vector<Tensor> masters(blocks_.size()), values(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    WeightBlock& block = blocks_[i];
    if (block.kind.role == Role::kept) continue;
    for (const OwnedPart& own : block.owned) shelf_->add(i, own);
    if (block.master_is_values() && !block.in_file) continue;
    masters[i] = block.master;
    if (!block.master_is_values() && block.in_file) values[i] = block.values;
    block.shelf = shelf_.get();
  }
  const auto any = [](const std::vector<Tensor>& all) {
    return std::ranges::any_of(all, [](const Tensor& x) { return bool(x); });
  };
  const bool apart = any(values);
  if (any(masters))
    (void)shelf_->keep(masters, in_files_ && !apart ? Shelf::ReadBy::both : Shelf::ReadBy::update);
  if (apart) {
    const std::size_t number = shelf_->keep(values, Shelf::ReadBy::layers);
    for (WeightBlock& block : blocks_) block.values_there = number;
  }
  shelf_->must_have_room();
}

Tensor WeightBlock::in_window(std::size_t number, const OwnedPart& part) const {
  return shelf->here(number, part);
}

void Weights::place(Parameter& parameter) {
  const View view = view_of(parameter.spread, parameter.name);
  number_copies(parameter, view);
  const WeightKind kind = kind_of(parameter, view, data_.mesh);
  // Copies of what another stage counts stand apart on all ranks of a stage, whether or not these count
  // others.
  const auto copies = [this](const Parameter& p) { return p.tied && ties_->copy(p) > 0; };
  auto block = std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& b) {
    return b.kind == kind && copies(*b.slots.front().parameter) == copies(parameter);
  });
  if (block == blocks_.end()) {
    block = blocks_.insert(blocks_.end(), WeightBlock{.kind = kind, .readers = readers_of(view)});
    block->in_file = in_files_ && kind.role != Role::kept;
    if (block->in_file && block->readers.cut() && !block->readers.cut(CutUp::weights))
      fail(Kind::internal, "weights: ", parameter.name, " lies in files whole while its states are cut");
    if (kind.role == Role::kept && data_.mesh != nullptr)
      block->readers = {&data_.mesh->along(data_axes(view))};  // everybody's, and nobody's to cut
  }
  block->slots.push_back({&parameter, 0});
}

// Of ranks that hold the same piece the first is 0: along every axis of the model that does not cut it, among
// its neighbours, and of tied copies. Data-parallel ranks are another matter, because they may cut states.
void Weights::number_copies(Parameter& parameter, View view) const {
  const Axes same = (parameter.spread.copy | parameter.spread.partial) & model_axes(view);
  int copy = parameter.tied ? ties_->copy(parameter) : 0;
  if (data_.mesh != nullptr) copy += data_.mesh->place(same);
  for (Piece& piece : parameter.pieces) piece.where.replica = copy;
  const Neighbours& shared = parameter.shared;
  if (shared.ranks > 1 && data_.mesh != nullptr)
    parameter.pieces.back().where.replica += data_.mesh->place(shared.along) % shared.ranks;
}

Readers Weights::readers_of(View view) const {
  if (data_.mesh == nullptr) return {};
  Communicator& all = data_.mesh->along(data_axes(view));
  Communicator& group = sharers(view);
  if (group.size() == 1) return {&all};
  Readers out{&group, data_.cut};
  if (data_.groups > 1) out.twins = &data_.mesh->beyond(data_axes(view), group.size());
  const bool twice = data_.near > 1 && data_.near < group.size() && out.cut(CutUp::weights);
  if (twice) out.near = &data_.mesh->neighbours(data_axes(view), data_.near);
  if (twice && data_.gradient_block > 0)
    out.far = &data_.mesh->beyond(data_axes(view), data_.near, data_.groups > 1 ? group.size() : 0);
  return out;
}

bool WeightBlock::holds_matrices(const WeightBucket& bucket) const {
  return std::ranges::all_of(slots_of(bucket),
                             [](const WeightSlot& slot) { return slot.parameter->shape.rank() > 1; });
}

Communicator& Weights::sharers(View view) const {
  Communicator& all = data_.mesh->along(data_axes(view));
  return data_.groups == 1 ? all : data_.mesh->neighbours(data_axes(view), exact(all.size(), data_.groups));
}

// Backward comes from the last parameter to the first, so buckets are filled from there, and end where layers
// end: with every layer where weights are cut, because layers are lent. A weight that another stage holds too
// stands alone: its shares are then the same wherever it lies.
void Weights::cut_into_buckets(WeightBlock& block) const {
  const std::int64_t enough = block.lent() ? 1 : data_.bucket;
  int last = int(block.slots.size());
  std::int64_t elements = 0;
  for (int i = last - 1; i >= 0; --i) {
    const auto tied = [&](int slot) { return block.slots[std::size_t(slot)].parameter->tied; };
    const auto layer = [&](int slot) { return block.slots[std::size_t(slot)].parameter->layer; };
    elements += stored(block.slots[std::size_t(i)]);
    const bool full = enough > 0 && elements >= enough;
    const bool layer_ends = i == 0 || layer(i) < 0 || layer(i) != layer(i - 1);
    if (i > 0 && !(full && layer_ends) && !tied(i) && !tied(i - 1)) continue;
    block.buckets.push_back({.first_slot = i, .slots = last - i});
    last = i;
    elements = 0;
  }
}

// A share must be whole for every rank, and start at a multiple of 64 bytes.
void Weights::share_out(WeightBlock& block) const {
  const Readers& readers = block.readers;
  const std::int64_t unit = readers.cut() ? slot_unit * readers.ranks() : slot_unit;
  std::for_each(block.buckets.rbegin(), block.buckets.rend(), [&](WeightBucket& bucket) {
    bucket.at = block.elements;
    for (int i = 0; i < bucket.slots; ++i) {
      WeightSlot& slot = block.slots[std::size_t(bucket.first_slot) + std::size_t(i)];
      slot.at = block.elements;
      block.elements += stored(slot);
    }
    bucket.elements = rounded_up(block.elements - bucket.at, unit);
    block.elements = bucket.at + bucket.elements;
  });
  if (!readers.cut()) {
    block.owned = {{.count = block.elements}};
    block.kept = block.elements;
    return;
  }
  for (const WeightBucket& bucket : block.buckets) {
    const std::int64_t share = bucket.elements / readers.ranks();
    block.owned.push_back({bucket.at + readers.rank() * share, block.kept, share});
    block.kept += share;
  }
}

void Weights::allocate(WeightBlock& block, Dtype activations, For purpose) {
  const Dtype compute = block.kind.role == Role::kept ? Dtype::f32 : activations;
  const auto held = [&](CutUp what) { return Shape{block.readers.cut(what) ? block.kept : block.elements}; };
  block.values = block.in_file ? empty(shelf_->file(), held(CutUp::weights), compute, Use::weights)
                               : ops::zeros(device_, held(CutUp::weights), compute, Use::weights);
  block.master = block.values;
  if (purpose == For::training) {
    if (compute != Dtype::f32)
      block.master = shelf_ ? empty(shelf_->file(), {block.kept}, Dtype::f32, Use::optimizer)
                            : ops::zeros(device_, {block.kept}, Dtype::f32, Use::optimizer);
    const Dtype sums = block.kind.role == Role::kept ? Dtype::f32 : data_.sums;
    block.grads = ops::zeros(device_, held(CutUp::gradients), sums, Use::gradients);
  }
  for (const WeightSlot& slot : block.slots) {
    if (!block.lent()) slot.parameter->value = part(block.values, slot);
    if (block.sums_in_grads())
      slot.parameter->grad.bind(part(block.grads, slot));
    else if (block.grads)
      slot.parameter->grad.bind_on_demand();
  }
  if (block.sums_in_grads()) block.fresh = FreshSums(block.slots, 0, block.elements);
}

void Weights::initialize(std::uint64_t seed) {
  for (const WeightBlock& block : blocks_)
    if (block.master_is_values() && !block.lent())
      for (const WeightSlot& slot : block.slots)
        weft::initialize(*slot.parameter, part(block.values, slot), seed);
    else if (!block.in_file && block.sums_in_grads())
      initialize_through_grads(block, seed);
    else
      initialize_by_buckets(block, seed);
}

// Whole parameters are made where gradients will lie, so that a rank that keeps a part of the masters never
// needs more memory than training does.
void Weights::initialize_through_grads(const WeightBlock& block, std::uint64_t seed) {
  for (const WeightSlot& slot : block.slots) weft::initialize(*slot.parameter, part(block.grads, slot), seed);
  for (const OwnedPart& own : block.owned) set_master(block, own, block.grads.slice(0, own.at, own.count));
  ops::copy_into(block.values, block.grads);
  ops::fill(block.grads, 0);
}

void Weights::set_master(const WeightBlock& block, const OwnedPart& own, const Tensor& values) {
  if (block.shelf == nullptr) return ops::copy_into(block.master_of(own), values);
  put(block.master, own, values);
}

/// Where what is kept of a block lies in a file.
void Weights::put(const Tensor& file, const OwnedPart& own, const Tensor& values) {
  if (!device_.holds_numbers()) return;
  std::vector<std::byte> brought(std::size_t(values.device().host_visible() ? 0 : values.bytes()));
  const void* from = brought.data();
  if (values.device().host_visible()) {
    device_.synchronize();
    from = values.address();
  } else {
    const std::int64_t at = values.offset() * size_of(values.dtype());
    values.device().copy_to_host(brought.data(), *values.storage(), at, values.bytes()).wait();
  }
  file.device()
      .copy_from_host(*file.storage(), own.kept * size_of(file.dtype()), from, values.bytes())
      .wait();
}

/// Of a bucket, all that this rank holds for layers.
void Weights::set_values(const WeightBlock& block, const WeightBucket& bucket, const OwnedPart& own,
                         const Tensor& whole) {
  const Tensor mine = whole.slice(0, own.at - bucket.at, own.count);
  if (block.in_file && !block.master_is_values())
    put(block.values, own, ops::cast(mine, block.values.dtype(), Use::weights));
  else if (block.readers.cut(CutUp::weights) && !block.in_file)
    ops::copy_into(block.value_of(own), mine);
  else if (!block.in_file)
    ops::copy_into(block.values.slice(0, bucket.at, bucket.elements), whole);
}

// Where gradients have no memory in f32 of their own either, a bucket at a time is made as large as they will
// be.
void Weights::initialize_by_buckets(const WeightBlock& block, std::uint64_t seed) {
  for (std::size_t i = 0; i < block.buckets.size(); ++i) {
    const WeightBucket& bucket = block.buckets[i];
    const OwnedPart own = block.share_of(i);
    const Tensor whole = ops::zeros(device_, {bucket.elements}, Dtype::f32, Use::gradients);
    for (const WeightSlot& slot : block.slots_of(bucket))
      weft::initialize(*slot.parameter, part(whole, slot, bucket.at), seed);
    set_master(block, own, whole.slice(0, own.at - bucket.at, own.count));
    set_values(block, bucket, own, whole);
  }
}

void Weights::zero_grads() {
  for (const WeightBlock& block : blocks_)
    if (block.sums_in_grads())
      block.fresh.begin(block.grads);
    else if (block.grads)
      ops::fill(block.grads, 0);
}

void Weights::publish() {
  for (const WeightBlock& block : blocks_)
    if (!block.master_is_values() && block.shelf == nullptr)
      for (const OwnedPart& own : block.owned) ops::copy_into(block.value_of(own), block.master_of(own));
  if (shelf_ && std::ranges::any_of(blocks_, [](const WeightBlock& b) { return b.shelf != nullptr; })) {
    shelf_->begin(in_files_ ? Shelf::Walk::publish : Shelf::Walk::read_first);
    while (const Shelf::Window* window = shelf_->next())
      if (const WeightBlock& block = blocks_[window->block];
          block.shelf != nullptr && !block.master_is_values())
        ops::copy_into(block.value_of(window->part), block.master_of(window->part));
  }
  gather();
}

void WeightBlock::gather(const Tensor& flat, UnderWay& under_way) const {
  for (std::size_t i = 0; i < buckets.size(); ++i)
    under_way.add(readers.circle->all_gather(flat.slice(0, buckets[i].at, buckets[i].elements),
                                             flat.slice(0, owned[i].at, owned[i].count)));
}

void Weights::gather() {
  ++version_;
  UnderWay under_way;
  for (const WeightBlock& block : blocks_)
    if (block.readers.cut() && !block.readers.cut(CutUp::weights)) block.gather(block.values, under_way);
  under_way.wait();
}

Tensor Weights::part(const Tensor& flat, const WeightSlot& slot, std::int64_t from) {
  const Shape& shape = slot.parameter->shape;
  return flat.slice(0, slot.at - from, shape.elements()).view(shape);
}

// Uncut states are the same on all data-parallel ranks: the first one's are copy 0.
std::vector<Piece> Weights::pieces_here(const WeightBlock& block, const WeightSlot& slot,
                                        Counted counted) const {
  std::vector<Piece> out;
  for (const OwnedPart& own : block.owned) {
    const std::int64_t shift = counted == Counted::from_the_block ? 0 : own.kept - own.at;
    for (Piece piece : fragments(slot.parameter->pieces, own.at - slot.at, own.count)) {
      piece.at += slot.at + shift;
      const Readers& readers = block.readers;
      if (!readers.cut()) piece.where.replica = std::max(piece.where.replica, readers.rank());
      if (readers.twins) piece.where.replica = std::max(piece.where.replica, readers.twins->rank());
      out.push_back(piece);
    }
  }
  return out;
}

void Weights::each_master(const VisitHeld& visit) const {
  for (const WeightBlock& block : blocks_) {
    const bool whole = block.master_is_values() && !block.readers.cut(CutUp::weights);
    const Counted counted = whole ? Counted::from_the_block : Counted::from_what_is_kept;
    for (const WeightSlot& slot : block.slots)
      visit({slot.parameter->name, *slot.parameter, block.master, pieces_here(block, slot, counted), block});
  }
}

void Weights::each_kept(const std::vector<Tensor>& kept, const std::string& suffix,
                        const VisitHeld& visit) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    for (const WeightSlot& slot : blocks_[i].slots)
      visit({slot.parameter->name + suffix, *slot.parameter, kept[i],
             pieces_here(blocks_[i], slot, Counted::from_what_is_kept), blocks_[i]});
}

}  // namespace weft
