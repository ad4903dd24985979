#include "weft/backend/cuda/nccl_lines.h"

#include <cstring>
#include <exception>
#include <utility>

#include "weft/base/error.h"

namespace weft::cuda {
namespace {

/// Those that NCCL adds as the house wants it: in the type itself, which is wide enough. Numbers of 16 bits
/// would be rounded at every rank.
ncclDataType_t added_as(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return ncclFloat32;
    case Dtype::f64:
      return ncclFloat64;
    case Dtype::i32:
      return ncclInt32;
    case Dtype::i64:
      return ncclInt64;
    case Dtype::u8:
      return ncclUint8;
    default:
      fail(Kind::internal, "NCCL: adds no ", dtype);
  }
}

ncclRedOp_t operation(bool largest) { return largest ? ncclMax : ncclSum; }

ncclUniqueId id_of(const std::string& name) {
  ncclUniqueId id{};
  if (name.size() != sizeof id.internal)
    fail(Kind::comm, "NCCL: a name of ", name.size(), " bytes for a circle, expected ", sizeof id.internal);
  std::memcpy(id.internal, name.data(), sizeof id.internal);
  return id;
}

}  // namespace

NcclCircle::NcclCircle(const NcclLibrary& library, const std::string& name, DeviceLines::End end)
    : library_(library) {
  check(library_.open(&comm_, end.size, id_of(name), end.rank), "opening a circle of GPUs");
}

// Closing waits for what is under way.
NcclCircle::~NcclCircle() {
  if (comm_ && !cut_) library_.close(comm_);
}

ncclComm_t NcclCircle::get() const {
  if (cut_) fail(Kind::comm, "NCCL: this circle of GPUs was cut when a rank failed");
  return comm_;
}

void NcclCircle::check(ncclResult_t result, const char* what) const {
  if (result != ncclSuccess) fail(Kind::comm, "NCCL: ", what, ": ", library_.told(result));
}

void NcclCircle::cut() noexcept {
  if (comm_ && !std::exchange(cut_, true)) library_.cut(comm_);
}

// Where this rank fails, others may never come to what is under way.
NcclLine::~NcclLine() {
  if (std::uncaught_exceptions() > 0) circle_->cut();
  cudaStreamSynchronize(own_.get());
}

cudaStream_t NcclLine::stream() const {
  device_.choose();
  return own_.get();
}

void NcclLine::follow_device() {
  asked_.record(device_.stream());
  asked_.hold(own_.get());
}

int NcclLine::mark() { return marks_.record(stream()); }

void NcclLine::hold_device(int mark) {
  marks_[mark].hold(device_.stream());
  marks_.give_back(mark);
}

bool NcclLines::reduce(Dtype dtype) const { return dtype != Dtype::bf16 && dtype != Dtype::f16; }

void NcclLine::all_reduce(const Reduced& what) {
  circle_->check(nccl().all_reduce(what.from, what.to, std::size_t(what.count), added_as(what.dtype),
                                   operation(what.largest), circle_->get(), stream()),
                 "all_reduce");
}

void NcclLine::reduce_scatter(const Reduced& what) {
  circle_->check(nccl().reduce_scatter(what.from, what.to, std::size_t(what.count), added_as(what.dtype),
                                       operation(what.largest), circle_->get(), stream()),
                 "reduce_scatter");
}

void NcclLine::all_gather(void* full, const void* shard, std::int64_t bytes) {
  circle_->check(nccl().all_gather(shard, full, std::size_t(bytes), ncclUint8, circle_->get(), stream()),
                 "all_gather");
}

void NcclLine::broadcast(void* x, std::int64_t bytes, int root) {
  circle_->check(nccl().broadcast(x, x, std::size_t(bytes), ncclUint8, root, circle_->get(), stream()),
                 "broadcast");
}

void NcclLine::exchange(std::span<const Piece> out, std::span<const Piece> in) {
  const cudaStream_t at = stream();
  circle_->check(nccl().begin_group(), "a group");
  for (const Piece& piece : out)
    if (piece.bytes > 0)
      circle_->check(
          nccl().send(piece.at, std::size_t(piece.bytes), ncclUint8, piece.end, circle_->get(), at), "send");
  for (const Piece& piece : in)
    if (piece.bytes > 0)
      circle_->check(
          nccl().recv(piece.at, std::size_t(piece.bytes), ncclUint8, piece.end, circle_->get(), at), "recv");
  circle_->check(nccl().end_group(), "a group");
}

void NcclLine::add_parts(const Reduced& what, int parts) { launch_add_parts(stream(), what, parts); }

NcclLines::NcclLines(CudaDevice& device) : device_(device), library_(nccl_library()) {}

NcclLines::~NcclLines() { device_.ask_while_waiting({}); }

std::string NcclLines::place() const { return device_.place(); }

std::string NcclLines::fresh_name() {
  ncclUniqueId id{};
  if (library_.fresh_id(&id) != ncclSuccess) fail(Kind::comm, "NCCL: gives no name for a circle of GPUs");
  return {id.internal, sizeof id.internal};
}

std::unique_ptr<DeviceLine> NcclLines::open(const std::string& name, End end) {
  device_.choose();
  auto circle = std::make_shared<NcclCircle>(library_, name, end);
  std::erase_if(circles_, [](const std::weak_ptr<NcclCircle>& one) { return one.expired(); });
  circles_.push_back(circle);
  return std::make_unique<NcclLine>(device_, std::move(circle));
}

void NcclLines::ask_while_waiting(std::function<void()> check) {
  check_ = std::move(check);
  device_.ask_while_waiting([this] { look_round(); });
}

void NcclLines::look_round() {
  try {
    if (check_) check_();
    for (const auto& one : circles_) {
      const auto circle = one.lock();
      ncclResult_t found = ncclSuccess;
      if (circle && !circle->was_cut() && library_.failure(circle->get(), &found) == ncclSuccess)
        circle->check(found == ncclInProgress ? ncclSuccess : found, "a rank or a link of the circle failed");
    }
  } catch (...) {
    for (const auto& one : circles_)
      if (const auto circle = one.lock()) circle->cut();
    throw;
  }
}

}  // namespace weft::cuda
