// Sizes by the caches: a block of rows and a part of a panel stay in a core's second level. What is set aside
// never shrinks where a dimension grows, so that groups of any sizes fit what their sum would take.
#include "weft/backend/cpu/product/plan.h"

#include <algorithm>
#include <utility>

#include "weft/backend/cpu/product/loops.h"
#include "weft/backend/cpu/product/share_out.h"

namespace weft::product {
namespace {

constexpr std::int64_t part_limit = 384;  // a part of a panel: 96 KiB
constexpr std::int64_t parts_in_group = 4, parts_in_block = 2, parts_turned = 12;  // of k
constexpr std::int64_t few = 256;                                                  // rows
constexpr std::int64_t least_rows = 48, most_rows = 192;                           // of a block
constexpr std::int64_t block_floats = 150'000;                                     // a block of rows: 600 KB
constexpr std::int64_t block_beside_panels = 75'000;  // the same where panels need room too
constexpr std::int64_t most_panels = 4, panels_floats = 4 * part_limit * panel;  // of a thread: 384 KiB
constexpr std::int64_t most_in_turn = 8;          // panels that take each other's place
constexpr std::int64_t shared_columns = 4096;     // 12 MiB of panels
constexpr std::int64_t most_stretch = 2046;       // rows
constexpr std::int64_t stretch_floats = 2 << 20;  // 8 MiB
constexpr std::int64_t items_a_thread = 2;
constexpr double worth_a_thread = 1e6;  // operations
constexpr std::int64_t numbers_worth_a_thread = 1 << 16;

std::int64_t round_up(std::int64_t a, std::int64_t to) { return divide(a, to) * to; }
/// The share of a thread, and then of a cache, begins at a multiple of 64 bytes.
std::int64_t line(std::int64_t floats) { return round_up(floats, 16); }

/// Only a result in f32 can be added to by one walk after another.
bool walks_in_groups(const Form& f) { return f.direct && f.slabs == 1; }

/// Many rows by few columns: copying all panels for all threads is little, and each block of rows, copied or
/// not, is taken up once.
bool shares_panels(const Form& f) {
  return walks_in_groups(f) && f.m > few && f.m >= 2 * f.n && f.n <= shared_columns;
}

/// What one walk over the result may take of k, in parts.
std::int64_t parts(const Plan& p, const Form& f) {
  if (p.turned) return parts_turned;
  return p.by_panels && f.m > most_rows ? parts_in_group : parts_in_block;
}

void cut_depth(Plan& p, const Form& f) {
  const std::int64_t slab = f.k / f.slabs;
  p.part = divide(slab, divide(slab, part_limit));
  p.group = walks_in_groups(f) ? std::min(f.k, p.part * parts(p, f)) : f.k;
}

/// The greatest group of any k up to this one.
std::int64_t deepest(const Plan& p, const Form& f) { return p.group < f.k ? part_limit * parts(p, f) : f.k; }

void cut_by_panels(Plan& p, const Form& f) {
  const std::int64_t deep = deepest(p, f);
  const std::int64_t most = std::clamp(stretch_floats / deep, most_rows, most_stretch) / six * six;
  p.stretch = round_up(divide(f.m, divide(f.m, most)), six);
  const std::int64_t block = f.m <= most_rows ? block_floats : block_beside_panels;
  p.rows = std::clamp(block / p.group, least_rows, most_rows) / six * six;
  const std::int64_t panels = divide(f.n, panel);
  const std::int64_t wanted = p.threads > 1 ? items_a_thread * p.threads : 1;
  const std::int64_t together =
      p.one_block() ? most_in_turn : std::min(panels_floats / (deep * panel), most_panels);
  p.panels = std::max(std::min(together, panels / wanted), std::int64_t{1});
  p.items = std::min(divide(wanted, divide(panels, p.panels)), divide(p.stretch, least_rows));
  p.own_panel = std::min(most_panels * deep * panel, std::max(panels_floats, deep * panel));
  // Not most * deep: rounded, that may shrink where deep grows.
  if (!f.a_lies)
    p.shared_rows = line(std::min(std::min(round_up(f.m, six), most_stretch) * deep,
                                  std::max(stretch_floats, most_rows * deep)));
}

void cut_by_rows(Plan& p, const Form& f, std::int64_t most_of_a_block) {
  const std::int64_t most = std::clamp(block_floats / p.group, least_rows, most_of_a_block) / six * six;
  const std::int64_t blocks = round_up(divide(f.m, most), p.threads);
  p.stretch = f.m;
  p.rows = round_up(divide(f.m, blocks), six);
  p.items = std::min(divide(f.n, panel), divide(2 * p.threads, divide(f.m, p.rows)));
  const std::int64_t deep = deepest(p, f);
  if (!f.a_lies)
    p.own_rows = line(std::min(most_of_a_block * deep, std::max(block_floats, least_rows * deep)));
  p.shared_panels = deep * round_up(f.n, panel);
}

void cut_turned(Plan& p, Form f) {
  std::swap(f.m, f.n);
  std::swap(f.a_lies, f.b_lies);
  cut_by_rows(p, f, turned_rows);
}

/// A product that waits for memory is worth a thread for the numbers that it reads.
Plan plan_few(const Form& f, int threads) {
  Plan p;
  p.few = true;
  p.threads = f.n * f.k < numbers_worth_a_thread ? 1 : threads;
  cut_depth(p, f);
  if (!f.a_lies) p.shared_rows = line(f.m * f.k);
  return p;
}

}  // namespace

Plan plan(const Form& f, int threads) {
  if (f.may_be_few && f.m <= most_few && f.k >= least_few) return plan_few(f, threads);
  Plan p;
  p.threads = 2.0 * double(f.m) * double(f.n) * double(f.k) < worth_a_thread ? 1 : threads;
  p.turned = f.may_turn && f.m <= few;
  p.by_panels = !p.turned && !shares_panels(f);
  cut_depth(p, f);
  if (p.turned)
    cut_turned(p, f);
  else if (p.by_panels)
    cut_by_panels(p, f);
  else
    cut_by_rows(p, f, most_rows);
  for (int height = f.slabs; height > 1; height = (height + 1) / 2) ++p.tiles;
  if (f.slabs > 1 || !f.direct || f.n % 16 != 0 || p.turned) ++p.tiles;
  if (p.turned) p.tiles = int(divide(f.m, panel));
  p.own_tiles = p.tiles * (p.turned ? turned_rows : most_rows) * panel;
  if (f.bias) p.bias = round_up(f.n, panel);
  return p;
}

std::int64_t grouped_bytes(Form form, bool sums_rows, int threads) {
  std::int64_t most = 0;
  // Sizes grow with the rows between these, where the cut changes.
  const std::int64_t rows = sums_rows ? form.k : form.m;
  for (std::int64_t some :
       {rows, most_few, most_few + 1, most_rows, most_rows + 1, few, few + 1, 2 * form.n - 1, 2 * form.n}) {
    (sums_rows ? form.k : form.m) = std::min(some, rows);
    most = std::max(most, plan(form, threads).bytes());
  }
  return most;
}

}  // namespace weft::product
