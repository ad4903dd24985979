#include "weft/train/suspicion.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* file_name = "suspicion.json";
constexpr const char* format_word = "weft suspicion";
constexpr std::int64_t format_version = 1;

// As bits, because JSON has no word for what is not a number.
std::string word_of(double number) { return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(number)); }

double number_of(const std::string& word, const std::string& who) {
  std::uint64_t bits = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, wrong] = std::from_chars(word.data(), end, bits, 16);
  if (wrong != std::errc{} || stop != end) fail(Kind::data, who, ": '", word, "' is no number's bits");
  return std::bit_cast<double>(bits);
}

Suspicion suspicion_of(const Json& all, const std::string& who) {
  Suspicion out;
  out.step = all.at("step");
  for (const auto& word : all.at("numbers")) out.numbers.push_back(number_of(word, who));
  out.machines = all.at("machines").get<std::vector<std::string>>();
  out.rank = all.at("rank");
  out.where = all.at("where");
  out.made_up = all.at("made_up");
  out.machine_erred = all.at("machine_erred");
  return out;
}

}  // namespace

std::vector<double> numbers_of(const StepReport& report) {
  std::vector<double> out(report.losses.begin(), report.losses.end());
  out.push_back(report.grad_norm);
  return out;
}

bool alike(const std::vector<double>& one, const std::vector<double>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](double a, double b) {
    if (!std::isfinite(a) || !std::isfinite(b)) return !std::isfinite(a) && !std::isfinite(b);
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  });
}

bool same_machine(const Suspicion& suspicion, const std::vector<std::string>& machines) {
  const auto rank = std::size_t(suspicion.rank);
  if (suspicion.rank >= 0 && rank < suspicion.machines.size())
    return std::ranges::find(machines, suspicion.machines[rank]) != machines.end();
  return std::ranges::any_of(suspicion.machines, [&](const std::string& machine) {
    return std::ranges::find(machines, machine) != machines.end();
  });
}

std::string to_json(const Suspicion& suspicion) {
  std::vector<std::string> words;
  for (const double number : suspicion.numbers) words.push_back(word_of(number));
  const Json out{{"format", format_word},
                 {"version", format_version},
                 {"step", suspicion.step},
                 {"numbers", words},
                 {"machines", suspicion.machines},
                 {"rank", suspicion.rank},
                 {"where", suspicion.where},
                 {"made_up", suspicion.made_up},
                 {"machine_erred", suspicion.machine_erred}};
  return out.dump(1) + "\n";
}

Suspicion suspicion_from_json(std::string_view json, const std::string& who) {
  const Json all = Json::parse(json, nullptr, false);
  if (!all.is_object() || all.value("format", Json()) != format_word)
    fail(Kind::data, who, ": not what a run of weft remembers of a step");
  if (all.value("version", Json()) != format_version)
    fail(Kind::data, who, ": of another version, this weft reads version ", format_version);
  try {
    return suspicion_of(all, who);
  } catch (const Json::exception& error) {
    fail(Kind::data, who, ": ", error.what());
  }
}

void write_suspicion(const std::filesystem::path& step, const Suspicion& suspicion, const FileSystem& files) {
  write_atomically(step / file_name, std::string_view(to_json(suspicion)), files);
}

std::optional<Suspicion> read_suspicion(const std::filesystem::path& step) {
  const auto path = step / file_name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return suspicion_from_json(read_file(path), path.string());
}

void drop_suspicion(const std::filesystem::path& step) {
  std::error_code ignored;
  std::filesystem::remove(step / file_name, ignored);
}

}  // namespace weft
