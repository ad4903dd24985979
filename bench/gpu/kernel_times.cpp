// A library that CUDA's driver loads into any program (CUDA_INJECTION64_PATH=…/libkernel_times.so): when the
// program ends it has written a table of its kernels and copies into the file that WEFT_KERNEL_TIMES names,
// by the seconds that they took on the GPU, and how long the GPU had nothing to do between the first and the
// last of the second half of them (the first half starts up).
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Span {
  std::uint64_t start, end;
  std::string name;
};

/// What the GPU did, in the order in which CUPTI tells it.
std::vector<Span>& spans() {
  static std::vector<Span> all;
  return all;
}

constexpr std::size_t page_bytes = std::size_t(4) << 20;

void CUPTIAPI lend_page(std::uint8_t** page, std::size_t* bytes, std::size_t* records) {
  *page = static_cast<std::uint8_t*>(std::aligned_alloc(8, page_bytes));
  *bytes = page_bytes;
  *records = 0;
}

void keep(const CUpti_Activity* record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto* one = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    spans().push_back({one->start, one->end, one->name});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto* one = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
    spans().push_back({one->start, one->end, "copy of kind " + std::to_string(int(one->copyKind))});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto* one = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
    spans().push_back({one->start, one->end, "memset"});
  }
}

void CUPTIAPI take_page(CUcontext, std::uint32_t, std::uint8_t* page, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(page, valid, &record) == CUPTI_SUCCESS) keep(record);
  std::free(page);
}

/// Names without their arguments and template arguments: one line a kernel.
std::string short_name(const std::string& name) { return name.substr(0, 110); }

void write_table(std::FILE* out, std::vector<Span> all) {
  std::sort(all.begin(), all.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  all.erase(all.begin(), all.begin() + std::ptrdiff_t(all.size() / 2));
  std::map<std::string, std::pair<double, int>> by_name;
  double busy = 0;
  std::uint64_t until = all.front().start;
  for (const Span& one : all) {
    auto& [seconds, calls] = by_name[short_name(one.name)];
    seconds += double(one.end - one.start) * 1e-9;
    ++calls;
    if (one.end > until) busy += double(one.end - std::max(one.start, until)) * 1e-9;
    until = std::max(until, one.end);
  }
  const double whole = double(until - all.front().start) * 1e-9;
  std::fprintf(out, "%zu kernels and copies in %.6f s, of which the GPU worked %.6f\n", all.size(), whole,
               busy);
  std::vector<std::pair<std::string, std::pair<double, int>>> rows(by_name.begin(), by_name.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  for (const auto& [name, row] : rows)
    std::fprintf(out, "%9.3f ms %5.1f %% %6d calls %9.2f us each  %s\n", row.first * 1e3,
                 100 * row.first / whole, row.second, row.first / row.second * 1e6, name.c_str());
}

void finish() {
  cuptiActivityFlushAll(1);
  const char* path = std::getenv("WEFT_KERNEL_TIMES");
  if (path == nullptr || spans().empty()) return;
  if (std::FILE* out = std::fopen(path, "w")) {
    write_table(out, spans());
    std::fclose(out);
  }
}

}  // namespace

extern "C" int InitializeInjection() {
  spans();
  cuptiActivityRegisterCallbacks(lend_page, take_page);
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET})
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS)
      std::fprintf(stderr, "kernel_times: CUPTI refuses kind %d\n", int(kind));
  std::atexit(finish);
  return 1;
}
