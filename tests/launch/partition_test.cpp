// Agents at three places, and one without, on a network that falls apart at random: hours of it, as time
// leaps where nothing happens. No round begins while anybody works for another, and when the network is whole
// again the job goes on.
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <map>
#include <random>

#include "weft/base/error.h"
#include "weft/launch/rendezvous.h"

using namespace weft;
using namespace weft::launch;

namespace {

constexpr int places = 3, nodes = 4;

/// Every connection between two nodes goes through it: whole, held up as where a cable is pulled, or broken.
class Network {
 public:
  Network(Loop& loop, std::mt19937& draw) : loop_(loop), draw_(draw) {
    for (int from = 0; from < nodes; ++from)
      for (int to = 0; to < places; ++to) {
        if (from == to) continue;
        Descriptor& door = doors_[std::size_t(from)][std::size_t(to)];
        door = listen_at({.host = "127.0.0.1", .port = 0}, Bind::here);
        loop_.watch(door.get(), EPOLLIN, [this, from, to](std::uint32_t) { take(from, to); });
      }
  }
  /// Where nobody else listens, however many tests run at once.
  static Endpoint place(int number) {
    const int id = getpid();
    return {text("127.", 2 + id / 62500 % 250, ".", id / 250 % 250, ".", 1 + id % 250), 20000 + number};
  }
  std::vector<Endpoint> seen_by(int from) const {
    std::vector<Endpoint> out;
    for (int to = 0; to < places; ++to)
      out.push_back(from == to ? place(to)
                               : Endpoint{"127.0.0.1", port_of(doors_[std::size_t(from)][std::size_t(to)])});
    return out;
  }
  /// Whom this node asked last.
  int asked(int from) const { return asked_[std::size_t(from)]; }

  void cut(int a, int b, bool broken) {
    cut_[std::size_t(a)][std::size_t(b)] = cut_[std::size_t(b)][std::size_t(a)] = true;
    std::vector<int> lost;
    for (auto& [id, cable] : cables_) {
      if (!joins(cable, a, b)) continue;
      for (const Descriptor& end : cable.ends) loop_.forget(end.get());
      if (broken) lost.push_back(id);
    }
    for (const int id : lost) cables_.erase(id);
  }
  void mend() {
    for (auto& row : cut_) row.fill(false);
    for (auto& [id, cable] : cables_) hear(id, cable);
  }

 private:
  struct Cable {
    int from = 0, to = 0;
    std::array<Descriptor, 2> ends;
  };
  static bool joins(const Cable& c, int a, int b) {
    return (c.from == a && c.to == b) || (c.from == b && c.to == a);
  }
  void take(int from, int to) {
    bool full = false;
    Cable cable{from, to, {}};
    cable.ends[0] = accept_from(doors_[std::size_t(from)][std::size_t(to)].get(), full);
    if (!cable.ends[0]) return;
    asked_[std::size_t(from)] = to;
    const bool cut = cut_[std::size_t(from)][std::size_t(to)];
    if (cut && draw_() % 2 == 0) return;
    cable.ends[1] = reach(place(to));
    if (!cable.ends[1]) return;
    const int id = next_++;
    cables_[id] = std::move(cable);
    if (!cut) hear(id, cables_[id]);
  }
  static Descriptor reach(const Endpoint& to) {
    std::string why;
    Descriptor out = connect_to(to, why);
    return out && failure_of(out).empty() ? std::move(out) : Descriptor();
  }
  void hear(int id, const Cable& cable) {
    for (int i = 0; i < 2; ++i) {
      loop_.forget(cable.ends[std::size_t(i)].get());
      loop_.watch(cable.ends[std::size_t(i)].get(), EPOLLIN | EPOLLRDHUP,
                  [this, id, i](std::uint32_t) { carry(id, i); });
    }
  }
  void carry(int id, int end) {
    const auto found = cables_.find(id);
    if (found == cables_.end()) return;
    const auto& ends = found->second.ends;
    std::array<char, 16 << 10> bytes;
    const ssize_t got = recv(ends[std::size_t(end)].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    const bool carried = got > 0 && send(ends[std::size_t(1 - end)].get(), bytes.data(), std::size_t(got),
                                         MSG_NOSIGNAL) == got;
    if (carried) return;
    for (const Descriptor& one : ends) loop_.forget(one.get());
    cables_.erase(found);
  }

  Loop& loop_;
  std::mt19937& draw_;
  std::array<std::array<Descriptor, places>, nodes> doors_;
  std::array<std::array<bool, nodes>, nodes> cut_{};
  std::array<int, nodes> asked_{};
  std::map<int, Cable> cables_;
  int next_ = 0;
};

/// A job's agents, without workers: one works from the word to begin until it has stopped.
class World {
 public:
  World(unsigned seed, int voters)
      : draw_(seed),
        loop_(Loop::Time::leaps),
        network_(loop_, draw_),
        rules_{.nodes = {1, 3},
               .patience = {.join = 1e8, .last_call = 2},
               .max_restarts = 1 << 30,
               .grace = 3,
               .voters = voters} {
    for (int i = 0; i < nodes; ++i) start(i);
  }

  void storm(int moves) {
    for (int i = 0; i < moves; ++i) {
      pass(between(1, 45));
      move();
    }
    network_.mend();
    pass(120);
  }
  int rounds() const { return rounds_; }
  int splits() const { return splits_; }
  /// How many work, if all do for one coordinator.
  int working_together() const {
    int count = 0, leader = -1;
    for (const Agent& agent : agents_) {
      if (!agent.works) continue;
      if (leader >= 0 && agent.leader != leader) return -1;
      leader = agent.leader;
      ++count;
    }
    return count;
  }

 private:
  struct Agent {
    std::optional<Rendezvous> meeting;
    Join self;
    bool works = false;
    int round = 0, leader = -1, life = 0, begun = 0;
  };
  Agent& at(int i) { return agents_[std::size_t(i)]; }
  double between(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(draw_);
  }
  void pass(double seconds) {
    loop_.after(seconds, [this] { loop_.stop(); });
    loop_.run();
  }
  /// In the same life of the agent, if it still has it then.
  void later(int i, double seconds, const std::function<void(Agent&)>& act) {
    loop_.after(seconds, [this, i, life = at(i).life, act] {
      if (at(i).life == life) act(at(i));
    });
  }

  void start(int i) {
    Agent& a = at(i);
    a.self = {.run_id = "none", .host = text("h", i), .address = "a", .wanted_rank = i < places ? i : -1};
    a.meeting.emplace(loop_, Rendezvous::Terms{rules_, a.self}, network_.seen_by(i),
                      Rendezvous::Events{.heard = [this, i](const Message& m) { heard(i, m); },
                                         .cut_off = [this, i](const std::string&) { cut_off(i); },
                                         .given_up = [this, i](const std::string&) { again(i, 5); },
                                         .say = {}});
  }
  /// It ends, and whoever started it starts it again.
  void again(int i, double seconds) {
    at(i).works = false;
    later(i, 0, [this, i, seconds](Agent& a) {
      a.meeting.reset();
      ++a.life;
      later(i, seconds, [this, i](Agent&) { start(i); });
    });
  }
  /// Its workers hear a signal, and what still runs after the grace is killed.
  void cut_off(int i) {
    if (!at(i).works) return;
    later(i, between(0, rules_.grace), [round = at(i).begun](Agent& a) {
      if (a.begun == round) a.works = false;
    });
  }
  void heard(int i, const Message& message) {
    if (const auto* begins = std::get_if<Begin>(&message)) begin(i, *begins);
    if (const auto* stops = std::get_if<Stop>(&message)) {
      later(i, between(0, 2), [round = stops->round](Agent& a) {
        if (a.round != round || !a.works) return;
        a.works = false;
        a.meeting->tell(Stopped{.round = round, .status = 137, .progress = -1});
      });
    }
    if (std::holds_alternative<Finish>(message) || std::holds_alternative<Refused>(message)) again(i, 5);
  }
  void begin(int i, const Begin& begins) {
    Agent& a = at(i);
    const int place = a.meeting->coordinates() ? i : network_.asked(i);
    a.leader = place + places * at(place).life;
    a.round = begins.round;
    a.works = true;
    ++a.begun;
    if (begins.node == 0) ++rounds_;
    for (const Agent& other : agents_)
      splits_ += other.works && (other.leader != a.leader || other.round != a.round);
    if (draw_() % 8 == 0)
      later(i, between(1, 40), [round = a.round](Agent& failed) {
        if (failed.works && failed.round == round)
          failed.meeting->tell(Failed{round, {.rank = 0, .end = {1, 0}}});
      });
  }
  void move() {
    const auto what = draw_() % 8;
    const bool broken = draw_() % 2 == 0;
    if (what < 4) {
      network_.mend();
      const auto side = draw_() % (1U << nodes);
      for (int a = 0; a < nodes; ++a)
        for (int b = 0; b < a; ++b)
          if (((side >> a) & 1) != ((side >> b) & 1)) network_.cut(a, b, broken);
    } else if (what == 4) {
      const auto a = draw_() % nodes;
      network_.cut(int(a), int((a + 1 + draw_() % (nodes - 1)) % nodes), broken);
    } else if (what < 7) {
      network_.mend();
    } else {
      again(int(draw_() % nodes), between(1, 40));
    }
  }

  std::mt19937 draw_;
  Loop loop_;
  Network network_;
  Rules rules_;
  std::array<Agent, nodes> agents_;
  int rounds_ = 0, splits_ = 0;
};

}  // namespace

TEST(Partition, no_round_begins_beside_another_and_in_the_end_the_job_goes_on) {
  constexpr unsigned runs = 25;
  // Zero but where tests are shuffled: --gtest_repeat=40 --gtest_shuffle tries a thousand.
  const unsigned first = runs * unsigned(::testing::UnitTest::GetInstance()->random_seed());
  int rounds = 0;
  for (unsigned seed = first; seed < first + runs; ++seed) {
    World world(seed, places);
    world.storm(12);
    EXPECT_EQ(world.splits(), 0) << "seed " << seed;
    EXPECT_EQ(world.working_together(), 3) << "seed " << seed;
    rounds += world.rounds();
  }
  EXPECT_GT(rounds, 4 * int(runs));
}

TEST(Partition, is_seen_where_places_have_no_votes) {
  int splits = 0;
  for (unsigned seed = 0; seed < 5; ++seed) {
    World world(seed, 1);
    world.storm(12);
    splits += world.splits();
  }
  EXPECT_GT(splits, 0);
}

// A launcher that is stopped, or starved: its kernel takes connections, and nobody reads them.
TEST(Partition, a_place_that_takes_connections_and_never_answers_is_passed_by) {
  Loop loop(Loop::Time::leaps);
  const std::vector<Endpoint> at{Network::place(0), Network::place(1), Network::place(2)};
  const Descriptor silent = listen_at(at[0], Bind::here);
  const Rules rules{.nodes = {2, 2}, .patience = {.join = 1e8}, .voters = places};
  int begun = 0;
  std::array<std::optional<Rendezvous>, 2> agents;
  for (int i = 0; i < 2; ++i) {
    const Join self{.run_id = "none", .host = "h", .address = "a", .wanted_rank = -1};
    agents[std::size_t(i)].emplace(
        loop, Rendezvous::Terms{rules, self}, at,
        Rendezvous::Events{.heard =
                               [&](const Message& m) {
                                 if (std::holds_alternative<Begin>(m) && ++begun == 2) loop.stop();
                               },
                           .cut_off = [](const std::string&) {},
                           .given_up = [](const std::string&) {},
                           .say = {}});
  }
  loop.after(300, [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(begun, 2);
}
