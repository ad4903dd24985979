// Digests are sums over elements, each mixed with its place in the global tensor: no cut shows in them.
#include "weft/train/replay.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/checkpoint/agree.h"
#include "weft/checkpoint/step.h"
#include "weft/train/resume_weights.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* file_name = "replay.json";
constexpr const char* format_word = "weft replay";
constexpr std::int64_t format_version = 1;

// ---- marks

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93U;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9U;
  return x ^ (x >> 32);
}

/// `count` numbers, the first of which has the place `first` in its tensor.
template <class T>
void add(TensorMark& mark, const std::byte* from, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    T stored;
    std::memcpy(&stored, from + i * std::int64_t(sizeof(T)), sizeof stored);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &stored, sizeof stored);
    const std::uint64_t place = mixed(std::uint64_t(first + i + 1) * 0x9E3779B97F4A7C15U);
    mark.digest += mixed(place ^ bits);
    const auto value = double(static_cast<float>(stored));
    mark.square += value * value;
    mark.sketch += place % 2 == 0 ? value : -value;
  }
  mark.elements += count;
}

/// Reads a piece a buffer at a time, whatever device holds it.
void add(TensorMark& mark, const checkpoint::Named& named, const Piece& piece) {
  const Tensor& tensor = named.tensor;
  const std::int64_t width = size_of(tensor.dtype()), most = std::int64_t{1} << 20;
  const checkpoint::Box box = checkpoint::box_of(piece);
  Dims start;
  for (int i = 0; i < piece.where.global.rank(); ++i) start.push_back(0);
  std::vector<std::byte> buffer(std::size_t(std::min(most, box.shape.elements()) * width));
  checkpoint::each_run(box, box, {Shape(start), piece.where.global}, [&](const checkpoint::Run& run) {
    for (std::int64_t done = 0; done < run.count; done += most) {
      const std::int64_t now = std::min(most, run.count - done);
      tensor.device()
          .copy_to_host(buffer.data(), *tensor.storage(),
                        (tensor.offset() + piece.at + run.from + done) * width, now * width)
          .wait();
      if (tensor.dtype() == Dtype::f8e5m2)
        add<f8e5m2>(mark, buffer.data(), run.to + done, now);
      else
        visit_float(tensor.dtype(), [&]<class T>() { add<T>(mark, buffer.data(), run.to + done, now); });
    }
  });
}

TensorMarks marks_of_mine(const Weights& weights, const Optimizer& optimizer) {
  TensorMarks out;
  // What is of ranks is nothing to another layout, and shows in the moments.
  for (const checkpoint::Named& named : named_to_save(weights, optimizer, ToSave::of_all_ranks))
    for (const Piece& piece : named.pieces)
      if (piece.where.replica == 0 && piece.where.local.elements() > 0) add(out[named.name], named, piece);
  return out;
}

// ---- as text

double number_or_zero(double number) { return std::isfinite(number) ? number : 0; }

std::string word_of(std::uint64_t digest) { return fmt::format("{:016x}", digest); }

std::uint64_t digest_from(const std::string& word) {
  std::uint64_t out = 0;
  std::from_chars(word.data(), word.data() + word.size(), out, 16);
  return out;
}

/// One number where a family measures one loss, as it was before there were others.
Json json_of(std::span<const ReplayedLoss> losses) {
  if (losses.size() < 2) return losses.empty() ? 0.0 : number_or_zero(losses.front().mean);
  Json out = Json::object();
  for (const ReplayedLoss& loss : losses) out[loss.name] = number_or_zero(loss.mean);
  return out;
}

std::vector<ReplayedLoss> losses_of(const Json& all) {
  if (all.is_number()) return {{"loss", all.get<double>()}};
  std::vector<ReplayedLoss> out;
  for (const auto& [name, mean] : all.items()) out.push_back({name, mean.get<double>()});
  return out;
}

Json json_of(const TensorMarks& marks) {
  Json out = Json::object();
  for (const auto& [name, mark] : marks)
    out[name] = {{"elements", mark.elements},
                 {"digest", word_of(mark.digest)},
                 {"square", number_or_zero(mark.square)},
                 {"sketch", number_or_zero(mark.sketch)}};
  return out;
}

void add_json(TensorMarks& into, const Json& marks) {
  for (const auto& [name, one] : marks.items()) {
    TensorMark& mark = into[name];
    mark.elements += one.at("elements").get<std::int64_t>();
    mark.digest += digest_from(one.at("digest"));
    mark.square += one.at("square").get<double>();
    mark.sketch += one.at("sketch").get<double>();
  }
}

Replay replay_of(const Json& all) {
  Replay out;
  out.step = all.at("step");
  out.first_sample = all.at("first_sample");
  out.batch = all.at("batch");
  out.rate = all.at("rate");
  out.ends_rate = all.at("ends_rate");
  out.decay = all.at("decay");
  out.skipped = all.at("skipped");
  out.applied = all.at("applied");
  out.losses = losses_of(all.at("loss"));
  out.grad_norm = all.at("grad_norm");
  add_json(out.tensors, all.at("tensors"));
  return out;
}

// ---- comparing

/// Empty for a weight; ".m" for a state, whose name is a weight's with that behind it.
std::string kind_of(const std::string& name, const TensorMarks& among) {
  const auto dot = name.rfind('.');
  return dot != std::string::npos && among.contains(name.substr(0, dot)) ? name.substr(dot) : std::string();
}

/// What is noise beside the largest tensors of its kind cannot be told from rounding: attention's keys have
/// biases without any gradient.
class Comparison {
 public:
  Comparison(const Replay& saved, double rounding) : saved_(saved), rounding_(rounding) {
    for (const auto& [name, mark] : saved.tensors) squares_[kind_of(name, saved.tensors)] += mark.square;
  }
  bool equal(const std::string& name, const TensorMark& a, const TensorMark& b) const {
    if (rounding_ == 0) return a.elements == b.elements && a.digest == b.digest;
    const std::string kind = kind_of(name, saved_.tensors);
    const double norm = std::sqrt(a.square), all = std::sqrt(squares_.at(kind));
    double allowed = 10 * rounding_ * (norm + 0.01 * all);
    // Adam moves a weight whose gradient is noise by as much as any other.
    if (kind.empty()) allowed += 2 * saved_.rate * std::sqrt(double(a.elements));
    return a.elements == b.elements && std::abs(norm - std::sqrt(b.square)) <= allowed &&
           std::abs(a.sketch - b.sketch) <= 4 * allowed;  // of random signs, four deviations
  }

 private:
  const Replay& saved_;
  double rounding_;
  std::map<std::string, double> squares_;
};

bool near(double a, double b, double part) { return a == b || std::abs(a - b) <= part * std::abs(a); }

/// The i-th of each, 0 where there are fewer: a step that was not applied says nothing.
std::string loss_that_differs(std::span<const ReplayedLoss> saved, std::span<const ReplayedLoss> now,
                              std::size_t i, double rounding) {
  const double was = i < saved.size() ? saved[i].mean : 0, is = i < now.size() ? now[i].mean : 0;
  if (near(was, is, rounding)) return {};
  const std::string name =
      std::max(saved.size(), now.size()) == 1 ? "loss" : (i < saved.size() ? saved : now)[i].name;
  return fmt::format("its {} is {:.17g}, and was {:.17g}", name, is, was);
}

std::string tensors_that_differ(const Replay& saved, const Replay& now, double rounding) {
  const Comparison comparison(saved, rounding);
  std::vector<std::string> differ;
  for (const auto& [name, mark] : saved.tensors) {
    const auto found = now.tensors.find(name);
    if (found == now.tensors.end() || !comparison.equal(name, mark, found->second)) differ.push_back(name);
  }
  if (differ.empty()) return {};
  return fmt::format("{} of {} weights and moments differ, the first of them {}", differ.size(),
                     saved.tensors.size(), differ.front());
}

}  // namespace

TensorMarks marks_of(const Weights& weights, const Optimizer& optimizer, Communicator& world) {
  TensorMarks out;
  for (const std::string& part :
       checkpoint::agree(world, [&] { return json_of(marks_of_mine(weights, optimizer)).dump(); }))
    add_json(out, Json::parse(part));
  return out;
}

std::string to_json(const Replay& replay, const Hash& checkpoint) {
  Json out{{"format", format_word},
           {"version", format_version},
           {"checkpoint_xxh3_128", checkpoint.hex()},
           {"step", replay.step},
           {"first_sample", replay.first_sample},
           {"batch", replay.batch},
           {"rate", replay.rate},
           {"ends_rate", replay.ends_rate},
           {"decay", replay.decay},
           {"skipped", replay.skipped},
           {"applied", replay.applied},
           {"loss", json_of(replay.losses)},
           {"grad_norm", number_or_zero(replay.grad_norm)},
           {"tensors", json_of(replay.tensors)}};
  out["xxh3_128"] = hash(out.dump()).hex();
  return out.dump(1) + "\n";
}

Replay replay_from_json(std::string_view json, const Hash& checkpoint, const std::string& who) {
  Json all = Json::parse(json, nullptr, false);
  if (!all.is_object()) fail(Kind::data, who, ": damaged, it is no JSON object");
  const Json said = all.value("xxh3_128", Json());
  all.erase("xxh3_128");
  if (said != hash(all.dump()).hex()) fail(Kind::data, who, ": damaged, its hash is not the one it holds");
  try {
    if (all.at("format") != format_word || all.at("version") != format_version)
      fail(Kind::data, who, ": of another version, this weft reads version ", format_version);
    if (all.at("checkpoint_xxh3_128") != checkpoint.hex())
      fail(Kind::data, who, ": is of a checkpoint that was replaced");
    return replay_of(all);
  } catch (const Json::exception& error) {
    fail(Kind::data, who, ": ", error.what());
  }
}

void write_replay(const std::filesystem::path& step, const Replay& replay, const FileSystem& files) {
  const Hash index = checkpoint::OpenStep(step).index_hash();
  write_atomically(step / file_name, std::string_view(to_json(replay, index)), files);
}

Replay read_replay(const std::filesystem::path& step) {
  const auto path = step / file_name;
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    fail(Kind::data, step.string(), ": holds no record of the next step, which the run did not finish");
  return replay_from_json(read_file(path), checkpoint::OpenStep(step).index_hash(), path.string());
}

std::string another_step(const Replay& saved, const Replay& now) {
  const auto differ = [](const char* what, const auto& there, const auto& here) {
    return text(what, " is ", there, " there and ", here, " here");
  };
  if (saved.step != now.step) return differ("its number", saved.step, now.step);
  if (saved.first_sample != now.first_sample)
    return differ("its first sample", saved.first_sample, now.first_sample);
  if (saved.batch != now.batch) return differ("its batch", saved.batch, now.batch);
  if (saved.rate != now.rate || saved.ends_rate != now.ends_rate)
    return differ("its learning rate", saved.rate, now.rate);
  if (saved.decay != now.decay) return differ("its weight decay", saved.decay, now.decay);
  if (saved.skipped != now.skipped) return "it is skipped on purpose there or here";
  return {};
}

std::string difference(const Replay& saved, const Replay& now, double rounding) {
  std::vector<std::string> out;
  if (saved.applied != now.applied)
    out.push_back(text("it was ", saved.applied ? "" : "not ", "applied then, and is ",
                       now.applied ? "" : "not ", "now"));
  for (std::size_t i = 0; i < std::max(saved.losses.size(), now.losses.size()); ++i)
    if (std::string differ = loss_that_differs(saved.losses, now.losses, i, rounding); !differ.empty())
      out.push_back(std::move(differ));
  if (!near(saved.grad_norm, now.grad_norm, 10 * rounding))
    out.push_back(
        fmt::format("its gradient norm is {:.17g}, and was {:.17g}", now.grad_norm, saved.grad_norm));
  if (std::string tensors = tensors_that_differ(saved, now, rounding); !tensors.empty())
    out.push_back(std::move(tensors));
  return join(out, "; ");
}

}  // namespace weft
