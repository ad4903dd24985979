// Finds the verb, runs it, and says what went wrong.
#include <algorithm>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "weft/base/error.h"
#include "weft/base/nearest.h"
#include "weft/cli/dialect/spelling.h"
#include "weft/cli/help.h"
#include "weft/cli/verb.h"
#include "weft/train/suspicion.h"

namespace weft::cli {
namespace {

bool asks_for_help(Args args) {
  const auto end = std::find(args.begin(), args.end(), "--");
  return std::any_of(args.begin(), end, [](std::string_view a) { return a == "--help" || a == "-h"; });
}

const Verb& find(std::span<const Verb> known, std::string_view name) {
  for (const Verb& verb : known)
    if (verb.name == name) return verb;
  std::vector<std::string_view> names;
  for (const Verb& verb : known) names.push_back(verb.name);
  fail(Kind::usage, "weft: '", name, "' is not a verb", did_you_mean(name, names), "; weft help lists them");
}

bool persons(const Error& e) { return e.kind() == Kind::usage || e.kind() == Kind::data; }

std::string_view short_place(std::string_view file) {
  const auto at = file.rfind("weft/");
  return at == std::string_view::npos ? file : file.substr(at);
}

/// In one write: ranks may share a stream, and a launcher add its own words to it.
int say(std::string_view sentence) {
  std::cout.flush();
  std::cerr << text(sentence, "\n") << std::flush;
  return static_cast<int>(Exit::failed);
}

int say(const Error& e) {
  std::string sentence = spelled(e.what());
  if (!persons(e))
    sentence += text(" [", word(e.kind()), ", ", short_place(e.where().file), ":", e.where().line, "]");
  const int failed = say(sentence);
  return persons(e) ? static_cast<int>(Exit::usage) : failed;
}

int dispatch(std::span<const Verb> known, Args words) {
  if (words.empty()) {
    std::cerr << overview(known);
    return static_cast<int>(Exit::usage);
  }
  if (words[0] == "--version") return find(known, "version").run(words.subspan(1));
  if (words[0] == "--help" || words[0] == "-h") return find(known, "help").run(words.subspan(1));
  const Verb& verb = find(known, words[0]);
  if (!asks_for_help(words.subspan(1))) return verb.run(words.subspan(1));
  std::cout << manual(verb);
  return static_cast<int>(Exit::done);
}

// What was not written is not done, whatever the verb thought: a script may have sent it to a full disk.
int after_writing(int done) {
  std::cout.flush();
  if (std::cout.good()) return done;
  std::cout.clear();
  const int failed = say(
      "weft: standard output took less than was written to it, as a full disk does; what arrived is cut off");
  return done != static_cast<int>(Exit::done) ? done : failed;
}

}  // namespace

int say_failure() {
  try {
    throw;
  } catch (const Refused& e) {
    say(e);
    return static_cast<int>(e.known() == Refused::Known::not_yet ? Exit::fault_unsettled
                                                                 : Exit::fault_confirmed);
  } catch (const Error& e) {
    return say(e);
  } catch (const std::bad_alloc&) {
    return say("weft: out of memory");
  } catch (const std::exception& e) {
    return say(text("weft: ", e.what(), " [a failure weft did not foresee]"));
  }
}

int run(std::span<const Verb> known, Args words) {
  try {
    return after_writing(dispatch(known, words));
  } catch (const std::exception&) {
    return say_failure();
  }
}

}  // namespace weft::cli
