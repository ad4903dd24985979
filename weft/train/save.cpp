// A failure is a sentence here, so that the thread that writes can hand it over.
#include "weft/train/save.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/checkpoint/agree.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/keep.h"

namespace weft {
namespace {

// Disks fill up and fail; a peer that is gone or a contradiction of weft's own ends the run.
bool survivable(const Error& error) { return error.kind() == Kind::data || error.kind() == Kind::device; }

std::string on_first_rank(Communicator& circle, const std::function<void()>& work) {
  return checkpoint::agree(circle, [&]() -> std::string {
    if (circle.rank() == 0) work();
    return {};
  })[0];
}

/// What is known at once is no surprise for the first save; a disk that fails or fills up later is one.
void must_be_writable(const std::filesystem::path& directory) {
  if (::access(directory.c_str(), W_OK | X_OK) == 0 || (errno != EACCES && errno != EROFS)) return;
  fail(Kind::usage, "{checkpoint.save} ", directory.string(), ": cannot be written: ", std::strerror(errno));
}

}  // namespace

Saver::Saver(const CheckpointConfig& config, Communicator& world, const Log& log, const FileSystem& files)
    : config_(config),
      circle_(world.split(0, world.rank())),
      log_(world.rank() == 0 ? log : Log()),
      files_(files),
      in_background_(config.in_background) {
  (void)on_first_rank(*circle_, [&] {
    make_directories(config_.save, files_);
    must_be_writable(config_.save);
    lock_ = std::make_unique<checkpoint::DirectoryLock>(config_.save, checkpoint::this_run(), log_, files_);
    lock_->keep_beating();
  });
}

Saver::~Saver() {
  if (thread_.valid()) thread_.wait();
}

void Saver::save(SaveOrder order) {
  settle();
  const std::int64_t step = order.step;
  if (!in_background_ || !copied(order)) return outcome(step, write(order, order.mine));
  order.mine.clear();
  under_way_ = std::move(order);
  thread_ = std::async(std::launch::async, [this] { return write(under_way_, snapshot_.named()); });
}

void Saver::record(Replay next) {
  if (circle_->rank() != 0) return;
  record_ = std::move(next);
  if (!thread_.valid()) write_record();
}

void Saver::write_record() {
  if (!record_ || last_saved_ != record_->step - 1) return;
  try {
    write_replay(checkpoint::step_directory(config_.save, record_->step - 1), *record_, files_);
  } catch (const Error& error) {
    if (!survivable(error)) throw;
    log_.warning(
        text("step ", record_->step, " could not be recorded for {checkpoint.verify}: ", error.what()));
  }
  record_.reset();
}

void Saver::look() {
  if (thread_.valid() && thread_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) settle();
}

void Saver::settle() {
  if (thread_.valid()) outcome(under_way_.step, thread_.get());
}

// All ranks copy, or none does: a save is everybody's.
bool Saver::copied(const SaveOrder& order) {
  try {
    checkpoint::agree(*circle_, [&]() -> std::string {
      snapshot_.take(order.mine);
      return {};
    });
    return true;
  } catch (const Error& error) {
    if (!survivable(error)) throw;
    log_.warning(
        text("checkpoints are written in the foreground from now on, as there is no room for a copy: ",
             error.what()));
    in_background_ = false;
    return false;
  }
}

std::string Saver::write(const SaveOrder& order, std::span<const checkpoint::Named> mine) {
  try {
    (void)on_first_rank(*circle_, [&] { lock_->must_hold(); });
    checkpoint::Beside beside(order.facts, kept_);
    beside.numbers = checkpoint::Numbers::finite;
    checkpoint::save(checkpoint::step_directory(config_.save, order.step), mine, beside, *circle_, files_);
  } catch (const Error& error) {
    if (survivable(error)) return error.what();
    if (error.kind() != Kind::usage) throw;
    fail(Kind::usage, "the checkpoint of step ", order.step, " is not saved: ", error.what(), "; ", newest());
  }
  prune(order);
  return {};
}

// Whatever saved it: this run, or the one that it goes on from.
std::string Saver::newest() const {
  try {
    const auto found = checkpoint::find_latest(config_.save).step;
    if (found) return text("step ", found->step, " is the newest that is saved");
  } catch (const Error&) {
    // A directory that cannot be read now says nothing.
    if (last_saved_) return text("step ", *last_saved_, " is the newest that is saved");
  }
  return "nothing is saved yet";
}

// What cannot be deleted costs room and nothing else.
void Saver::prune(const SaveOrder& order) {
  const bool all = config_.keep_last == 0 && config_.keep_best == 0 && config_.retain_interval == 0;
  if (all || circle_->rank() != 0) return;
  const checkpoint::KeepRules keep{.last = std::max(1, config_.keep_last),
                                   .every = config_.retain_interval,
                                   .also = {},
                                   .ranked = order.ranked,
                                   .best = config_.keep_best};
  try {
    checkpoint::prune(config_.save, keep, files_);
  } catch (const Error& error) {
    log_.warning(text("an old checkpoint could not be deleted: ", error.what()));
  }
}

void Saver::outcome(std::int64_t step, const std::string& failure) {
  failed_ = !failure.empty();
  if (failed_) {
    if (circle_->rank() != 0) return;
    return log_.warning(text("the checkpoint of step ", step, " could not be saved: ", failure,
                             "; training goes on, ", newest()));
  }
  last_saved_ = step;
  log_.info(text("saved ", checkpoint::step_directory(config_.save, step).string()));
  write_record();
}

}  // namespace weft
