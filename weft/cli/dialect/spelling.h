// Settings as a person calls them. Rooms below cli name fields, and the front door puts flags or keys there.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/error.h"
#include "weft/cli/dialect.h"
#include "weft/train/suspicion.h"

namespace weft::cli {

/// "{batch.micro} is not set" -> "--micro-batch-size is not set"; "{model.precision=f16}" -> "--fp16". A
/// field that the command set is called as it was there, by a flag or by a key of its file; another one by
/// the first flag that sets it. What stands in braces and is no setting stays.
std::string spelled(std::string_view message, const Command* command = nullptr);

/// The same for everything that a log is told. The command must outlive it.
std::function<std::string(std::string_view)> wording(const Command& command);

/// What work throws calls settings as the command did.
template <class Work>
auto in_words_of(const Command& command, const Work& work) {
  try {
    return work();
  } catch (const Refused& e) {  // whose exit code says what is known
    throw Refused(e.known(), spelled(e.what(), &command));
  } catch (const Error& e) {
    throw Error(e.kind(), spelled(e.what(), &command), e.where());
  }
}

}  // namespace weft::cli
