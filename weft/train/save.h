// Writing checkpoints while a run goes on: what a failure of the disk does, what is kept, and who waits.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/base/log.h"
#include "weft/checkpoint/lock.h"
#include "weft/checkpoint/named.h"
#include "weft/checkpoint/save.h"
#include "weft/checkpoint/snapshot.h"
#include "weft/comm/communicator.h"
#include "weft/train/config.h"
#include "weft/train/replay.h"

namespace weft {

/// One save: the step, what is said about it, this rank's tensors, and the steps that were validated, best
/// first.
struct SaveOrder {
  std::int64_t step = 0;
  std::string facts;
  std::vector<checkpoint::Named> mine;
  std::vector<std::int64_t> ranked;
};

/// Protocol: every rank calls save() for the same steps. In the foreground it returns when the checkpoint
/// survives a power cut. In the background it returns when the tensors are copied to host memory; a thread
/// writes the copy, speaking to the other ranks' threads over a circle of their own, and the next save() or
/// settle() waits for it, so there is never more than one copy. A disk that fails is told of and survived:
/// the run goes on, and failed() is what it comes to in the end. Failures of ranks and of weft itself are
/// thrown, and so are numbers that are not finite and a directory that another run has taken. Rank 0 holds
/// the directory's lock.
class Saver {
 public:
  /// Who tells: `log` says nothing on ranks that do not. Fails where `config.save` cannot be made, or another
  /// run saves there.
  Saver(const CheckpointConfig& config, Communicator& world, const Log& log, const FileSystem& files);
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// Files that go along with every save; those of rank 0 count.
  void keep(std::vector<checkpoint::Attached> files) { kept_ = std::move(files); }
  void save(SaveOrder order);
  /// Puts the step that followed a save beside it, once that is complete. A failure costs the record alone.
  void record(Replay next);
  /// Tells of a save in the background that has ended; does not wait.
  void look();
  /// Waits for the thread, if it writes.
  void settle();
  /// Whether the last save that was asked for is not on the disk.
  bool failed() const { return failed_; }
  std::optional<std::int64_t> last_saved() const { return last_saved_; }

 private:
  std::string write(const SaveOrder& order, std::span<const checkpoint::Named> mine);
  void outcome(std::int64_t step, const std::string& failure);
  std::string newest() const;
  void prune(const SaveOrder& order);
  bool copied(const SaveOrder& order);
  void write_record();

  const CheckpointConfig& config_;
  std::unique_ptr<Communicator> circle_;
  Log log_;
  const FileSystem& files_;
  std::unique_ptr<checkpoint::DirectoryLock> lock_;  // rank 0's
  checkpoint::Snapshot snapshot_;
  bool in_background_;
  SaveOrder under_way_;  // of the thread
  std::future<std::string> thread_;
  bool failed_ = false;
  std::optional<std::int64_t> last_saved_;
  std::vector<checkpoint::Attached> kept_;
  std::optional<Replay> record_;  // rank 0's: of the step after the one that is being written
};

}  // namespace weft
