// Every word of a communicator, many at once and in a rank's own order: what comes out, byte by byte.
#pragma once

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "tests/support/plain_device.h"
#include "weft/comm/communicator.h"
#include "weft/tensor/host.h"

namespace weft::testing {

using Bytes = std::vector<std::uint8_t>;

inline Tensor random(Device& device, std::mt19937& draw, std::int64_t n, Dtype dtype) {
  const Tensor x = empty(device, {n}, dtype);
  const auto fill = [&]<class T>(std::span<T> values) {
    for (T& value : values) value = T(float(int(draw() % 20001) - 10000) / 777.F);
  };
  if (dtype == Dtype::f32) fill(x.as<float>());
  if (dtype == Dtype::bf16) fill(x.as<bf16>());
  if (dtype == Dtype::f16) fill(x.as<f16>());
  if (dtype == Dtype::f64) fill(x.as<double>());
  if (dtype == Dtype::i32) fill(x.as<std::int32_t>());
  if (dtype == Dtype::i64) fill(x.as<std::int64_t>());
  return x;
}

inline void keep(Bytes& said, const Tensor& x) {
  const auto* bytes = static_cast<const std::uint8_t*>(x.address());
  said.insert(said.end(), bytes, bytes + x.bytes());
}

/// What every rank draws alike, and what each draws for itself.
struct Draws {
  std::mt19937 all, mine;
};

/// Several words at once, finished in an order of the rank's own.
inline void speak_at_once(Communicator& circle, Device& device, Draws& draws, Bytes& said) {
  constexpr std::array types{Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f64, Dtype::i32, Dtype::i64};
  const int n = circle.size();
  const std::int64_t length = std::int64_t(1 + draws.all() % 9000) * n;
  const Dtype dtype = types[draws.all() % types.size()];
  const int root = int(draws.all() % unsigned(n));
  const Reduce how = draws.all() % 2 ? Reduce::sum : Reduce::max;
  const Tensor summed = random(device, draws.mine, length + 1, dtype),
               full = random(device, draws.mine, length, dtype);
  const Tensor shard = empty(device, {length / n}, dtype), gathered = empty(device, {length}, dtype);
  const Tensor told = random(device, draws.mine, length, dtype);
  const Tensor own = random(device, draws.mine, length / n, dtype),
               letter = random(device, draws.mine, 5000, dtype);
  const Tensor in_place = random(device, draws.mine, length, dtype), got = empty(device, {5000}, dtype);
  const Tensor own_part = in_place.slice(0, circle.rank() * (length / n), length / n);
  std::vector<Pending> pending;
  pending.push_back(circle.all_reduce(summed, how));
  pending.push_back(circle.reduce_scatter(shard, full));
  pending.push_back(circle.all_gather(gathered, own));
  pending.push_back(circle.broadcast(told, root));
  Pending sent = circle.send(letter, (circle.rank() + 1) % n, 70);
  pending.push_back(circle.recv(got, (circle.rank() + n - 1) % n, 70));
  pending.push_back(circle.reduce_scatter(own_part, in_place));
  std::shuffle(pending.begin(), pending.end(), draws.mine);
  for (Pending& one : pending) one.wait();
  sent.wait();  // a letter of threads is taken when its reader waits, so this comes last
  for (const Tensor& x : {summed, shard, gathered, told, got, own_part}) keep(said, x);
}

inline void exchange_rows(Communicator& circle, Device& device, Draws& draws, Bytes& said) {
  const int n = circle.size();
  std::vector<std::int64_t> table;  // rows from rank to rank
  for (int i = 0; i < n * n; ++i) table.push_back(draws.all() % 5);
  std::vector<std::int64_t> given, taken;
  std::int64_t in_rows = 0, out_rows = 0;
  for (int r = 0; r < n; ++r) {
    given.push_back(table[std::size_t(circle.rank() * n + r)]);
    taken.push_back(table[std::size_t(r * n + circle.rank())]);
    in_rows += given.back();
    out_rows += taken.back();
  }
  const Tensor in = random(device, draws.mine, in_rows * 3, Dtype::f32), out = empty(device, {out_rows, 3});
  const Tensor letter = random(device, draws.mine, 1, Dtype::f32);
  const auto trade = [&] { return circle.all_to_all(out, in.view({in_rows, 3}), given, taken); };
  // The others join when they have heard from the first, which does not wait for them in between.
  std::vector<Pending> letters;
  if (circle.rank() > 0) circle.recv(letter, 0, 71).wait();
  Pending traded = trade();
  given = taken = {};
  for (int r = 1; circle.rank() == 0 && r < n; ++r) letters.push_back(circle.send(letter, r, 71));
  traded.wait();
  for (Pending& sent : letters) sent.wait();
  keep(said, out);
  keep(said, letter);
}

/// A rank that waits in one circle gets what it waits for from one that has joined there and waits in the
/// other circle, and for it.
inline void wait_crosswise(Communicator& one, Communicator& other, Device& device, Draws& draws,
                           Bytes& said) {
  const Tensor x = random(device, draws.mine, 500, Dtype::f32),
               y = random(device, draws.mine, 500, Dtype::f32);
  Pending first = one.all_reduce(x, Reduce::sum);
  if (one.rank() % 2 == 0) first.wait();
  other.all_reduce(y, Reduce::sum).wait();
  if (one.rank() % 2 != 0) first.wait();
  keep(said, x);
  keep(said, y);
}

/// The same bytes of every communicator.
inline Bytes speak(Communicator& world) {
  PlainDevice device;
  Bytes said;
  Draws draws{std::mt19937(5), std::mt19937(unsigned(100 + world.rank()))};
  const auto half = world.split(world.rank() % 2, -world.rank()), same = world.split(0, world.rank());
  for (int round = 0; round < 12; ++round) {
    speak_at_once(world, device, draws, said);
    exchange_rows(world, device, draws, said);
    wait_crosswise(world, *same, device, draws, said);
    Draws of_half{std::mt19937(unsigned(round)), std::mt19937(unsigned(7 * round + world.rank()))};
    speak_at_once(*half, device, of_half, said);
    world.barrier();
  }
  return said;
}

}  // namespace weft::testing
