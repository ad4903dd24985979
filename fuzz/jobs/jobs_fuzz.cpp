// Job files: whatever the bytes are, they are rendered or refused with an Error, and what is rendered reads
// back. The same bytes as what a cluster says of pods: a state, or an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "weft/base/error.h"
#include "weft/jobs/render.h"
#include "weft/jobs/small.h"
#include "weft/jobs/status.h"

namespace {

void look_at(std::string_view bytes) {
  using namespace weft;
  try {
    const Tree list = read_yaml(bytes, "kubectl");
    static_cast<void>(jobs::told(jobs::seen_in(list), "f"));
    static_cast<void>(jobs::events_told(list, "f"));
    static_cast<void>(jobs::resources_told(list));
  } catch (const Error&) {  // no list of objects
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  look_at(bytes);
  try {
    const jobs::Job job = jobs::read_job(bytes, "f");
    static_cast<void>(jobs::made_small(job.words, job.nodes));
    for (const auto objects :
         {jobs::Objects::job, jobs::Objects::jobset, jobs::Objects::trainjob, jobs::Objects::mpijob}) {
      std::vector<std::string> notices;
      for (const Tree& tree : jobs::render(job, {.objects = objects}, notices)) {
        const std::string said = write_yaml(tree);
        if (write_yaml(read_yaml(said, "again")) != said) std::abort();
      }
    }
  } catch (const Error&) {  // a person's mistake, said as such
  }
  return 0;
}
