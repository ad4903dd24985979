// How findings are told.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/cli/doctor.h"

namespace weft::cli {

Finding binding(int allowed, int online) {
  if (allowed >= online) return {Verdict::good, "processors", text(allowed, " of ", online, " may be used")};
  return {Verdict::warn, "processors",
          text("this process may use ", allowed, " of ", online,
               ": its launcher bound it (mpirun: --bind-to none)")};
}

Finding loops_here(std::string_view run, std::string_view lacks) {
  if (!lacks.empty())
    return {Verdict::warn, "processor",
            text("runs ", lacks, ", and this program has loops for ", run,
                 " at best: it was made on another kind (make demo); make program builds for every kind")};
  if (run == "generic")
    return {Verdict::warn, "processor", "neither AVX2 nor AVX-512: our own loops run in their plain form"};
  return {Verdict::good, "processor", text("runs the ", run, " loops")};
}

Finding plain_loops(const PlainCalls& calls) {
  if (calls.empty()) return {Verdict::good, "loops", "small models train without the loops of last resort"};
  std::string all;
  for (const auto& [kernel, count] : calls)
    all += text(all.empty() ? "" : ", ", kernel, " ", count, " times");
  return {Verdict::warn, "loops", "plain loops of doubles computed a part of small models' training: " + all};
}

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "ok";
    case Verdict::warn:
      return "slow";
    case Verdict::bad:
      return "broken";
  }
  return "unknown";
}

std::string findings_text(std::span<const Finding> findings) {
  std::string out;
  for (const Finding& f : findings) {
    std::string line(word(f.verdict));
    line.append(8 - line.size(), ' ').append(f.what);
    line.append(20 - std::min<std::size_t>(line.size(), 19), ' ').append(f.sentence);
    out += line + "\n";
  }
  return out;
}

std::string findings_json(std::span<const Finding> findings) {
  nlohmann::ordered_json out = {{"findings", nlohmann::ordered_json::array()}};
  for (const Finding& f : findings)
    out["findings"].push_back({{"what", f.what}, {"verdict", word(f.verdict)}, {"sentence", f.sentence}});
  return out.dump(2) + "\n";
}

}  // namespace weft::cli
