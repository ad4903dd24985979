// What a run that refuses a result leaves behind, and what it makes of that when it goes on.
#include "weft/base/error.h"
#include "weft/checkpoint/agree.h"
#include "weft/checkpoint/find.h"
#include "weft/train/checkpointing.h"

namespace weft {

std::vector<std::string> Checkpointing::machines() const {
  return checkpoint::agree(lent_.mesh.world(), [this] { return lent_.machine; });
}

void Checkpointing::take_up_suspicion(const std::filesystem::path& from) {
  const std::string said = checkpoint::agree(lent_.mesh.world(), [&]() -> std::string {
    if (!tells()) return {};
    const auto found = read_suspicion(from);
    return found ? to_json(*found) : std::string();
  })[0];
  if (said.empty()) return;
  suspicious_ = from;
  Suspicion what = suspicion_from_json(said, from.string());
  const bool same = same_machine(what, machines());
  run_.stepper.suspect({.what = std::move(what), .same_machine = same});
}

void Checkpointing::refused(const Refused& why, std::int64_t step) {
  if (!suspicious_.empty() && step == run_.progress.first_step) {
    // It is known now: whoever starts next goes on. Who fails ends the others, so all wait until that stands.
    if (tells() && why.known() == Refused::Known::machine_erred) drop_suspicion(suspicious_);
    lent_.mesh.world().barrier();
    return;
  }
  const std::int64_t before = step - 1;
  if (!saver_ || before == 0) return;
  run_.stepper.put_back();
  const bool is_there =
      step == run_.progress.first_step && config_.checkpoint.load == config_.checkpoint.save;
  if (!is_there) save(before);
  saver_->settle();
  if (saver_->failed() || !why.to_remember()) return;
  Suspicion suspicion = *why.to_remember();
  suspicion.machines = machines();
  const FileSystem& files = lent_.files != nullptr ? *lent_.files : disk();
  if (tells()) write_suspicion(checkpoint::step_directory(config_.checkpoint.save, before), suspicion, files);
  lent_.mesh.world().barrier();
}

}  // namespace weft
