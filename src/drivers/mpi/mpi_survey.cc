#include "drivers/mpi/mpi_survey.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "drivers/mpi/interfaces.h"
#include "drivers/mpi/launch.h"
#include "drivers/mpi/mpi_ping_pong.h"
#include "drivers/mpi/mpi_tags.h"
#include "drivers/mpi/overdue.h"
#include "drivers/mpi/survey_rounds.h"

namespace sluice {
namespace {

using Numbers = std::vector<std::int64_t>;

// What a rank measured with a peer, for the way to rank 0; nothing but the peer if no answer came.
Numbers to_numbers(std::size_t peer, const std::optional<std::vector<LinkTimings>>& links) {
  Numbers numbers{static_cast<std::int64_t>(peer)};
  for (const LinkTimings& link : links.value_or(std::vector<LinkTimings>{})) {
    for (const Timing& t : link.timings) {
      numbers.insert(numbers.end(),
                     {static_cast<std::int64_t>(link.from), static_cast<std::int64_t>(link.to),
                      t.bytes, t.median.count(), t.min.count(), t.max.count()});
    }
  }
  return numbers;
}

std::vector<LinkTimings> links_of(const Numbers& numbers) {
  std::vector<LinkTimings> links;
  for (std::size_t i = 1; i + 5 < numbers.size(); i += 6) {
    const auto from = static_cast<std::size_t>(numbers[i]);
    const auto to = static_cast<std::size_t>(numbers[i + 1]);
    if (links.empty() || links.back().from != from) {
      links.push_back({from, to, {}});
    }
    links.back().timings.push_back({numbers[i + 2], Duration(numbers[i + 3]),
                                    Duration(numbers[i + 4]), Duration(numbers[i + 5])});
  }
  return links;
}

// 1. Everybody hails everybody, so that all know whom they hear and who hears them.
// 2. Rank 0 hears from those that it reaches whom they reach, and deals out rounds of pairs.
// 3. In each round it orders the ranks of every pair to measure or to serve.
class Surveyor {
 public:
  Surveyor(const MpiWorld& world, const SurveySpec& spec)
      : rank_(world.rank()),
        size_(world.size()),
        spec_(spec),
        ping_pong_(spec),
        members_(size_),
        hears_us_(size_, false) {}

  std::optional<Survey> run();
  // Waits for what was sent; false if some of it is still in flight, on this object's memory.
  bool settle();

 private:
  struct Order {
    int peer = -1;  // -1: the survey is over
    int measures = 0;
  };

  void hail();
  bool reaches(std::size_t peer) const {
    return peer == rank_ || (members_[peer].has_value() && hears_us_[peer]);
  }
  std::string reach() const;
  void obey();
  Survey conduct();
  std::vector<std::string> collect_reach();
  void conduct_round(const std::vector<RankPair>& pairs, Survey& survey);
  void take_part(const Order& order);

  template <class T>
  void post(const T& letter, std::size_t to, MpiTag tag);
  // What has come with this tag, and from whom, if anything has.
  template <class T>
  std::optional<std::pair<std::size_t, T>> take(MpiTag tag) const;

  std::size_t rank_;
  std::size_t size_;
  SurveySpec spec_;
  MpiPingPong ping_pong_;
  std::vector<std::optional<Member>> members_;  // that this rank has heard of
  std::vector<bool> hears_us_;
  std::deque<std::string> posted_;
  std::vector<MPI_Request> posts_;  // of the same
};

template <class T>
void Surveyor::post(const T& letter, std::size_t to, MpiTag tag) {
  const auto bytes = std::as_bytes(std::span(letter));
  posted_.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  MPI_Isend(posted_.back().data(), static_cast<int>(posted_.back().size()), MPI_BYTE,
            static_cast<int>(to), tag, MPI_COMM_WORLD, &posts_.emplace_back(MPI_REQUEST_NULL));
}

template <class T>
std::optional<std::pair<std::size_t, T>> Surveyor::take(MpiTag tag) const {
  int here = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};
  MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &here, &message, &status);
  if (here == 0) {
    return std::nullopt;
  }
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  T letter(static_cast<std::size_t>(bytes) / sizeof(typename T::value_type),
           typename T::value_type{});
  MPI_Mrecv(letter.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  return std::pair{static_cast<std::size_t>(status.MPI_SOURCE), std::move(letter)};
}

std::optional<Survey> Surveyor::run() {
  hail();
  if (rank_ == 0) {
    return conduct();
  }
  if (reaches(0)) {
    post(reach(), 0, kReachTag);
    obey();
  }
  return std::nullopt;
}

void Surveyor::hail() {
  members_[rank_] = Member{host_name(), interfaces()};
  const std::string hello = to_json(*members_[rank_]).dump();
  for (std::size_t r = 0; r < size_; ++r) {
    if (r != rank_) {
      post(hello, r, kHelloTag);
    }
  }
  poll_within(spec_.patience, kNap, [&] {
    while (const auto letter = take<std::string>(kHelloTag)) {
      members_[letter->first] = member_of(Json::parse(letter->second));
      post(std::string(), letter->first, kHeardTag);
    }
    while (const auto letter = take<std::string>(kHeardTag)) {
      hears_us_[letter->first] = true;
    }
    return reach() == std::string(size_, '+');
  });
}

// By rank: '+' if this one reaches it, else '-'.
std::string Surveyor::reach() const {
  std::string reach;
  for (std::size_t r = 0; r < size_; ++r) {
    reach += reaches(r) ? '+' : '-';
  }
  return reach;
}

// Rank 0 can be waited for: it comes to an end, or ends this process.
void Surveyor::obey() {
  for (Order order{.peer = 0}; order.peer >= 0;) {
    poll_until(
        [&] {
          const auto letter = take<std::vector<Order>>(kOrderTag);
          order = letter ? letter->second.front() : order;
          return letter.has_value();
        },
        [] {});
    if (order.peer >= 0) {
      take_part(order);
    }
  }
}

void Surveyor::take_part(const Order& order) {
  const auto peer = static_cast<std::size_t>(order.peer);
  if (order.measures != 0) {
    post(to_numbers(peer, ping_pong_.measure(rank_, peer)), 0, kResultTag);
  } else {
    ping_pong_.serve(peer);
  }
}

Survey Surveyor::conduct() {
  const std::vector<std::string> reach = collect_reach();
  const auto denies = [&](std::size_t a, std::size_t b) {
    return !reach[a].empty() && reach[a][b] != '+';
  };
  Survey survey;
  std::vector<std::string> machines;
  for (std::size_t r = 0; r < size_; ++r) {
    const bool known = !reach[r].empty();
    survey.members.push_back(known ? members_[r] : std::nullopt);
    machines.push_back(known ? members_[r]->host : "");
  }
  std::vector<RankPair> pairs;
  for (std::size_t a = 0; a < size_; ++a) {
    for (std::size_t b = a + 1; b < size_; ++b) {
      if (denies(a, b) || denies(b, a)) {
        survey.silent.emplace_back(a, b);
      } else if (!reach[a].empty() && !reach[b].empty()) {
        pairs.emplace_back(a, b);
      }
    }
  }
  for (const auto& round : survey_rounds(pairs, machines)) {
    conduct_round(round, survey);
  }
  for (std::size_t r = 1; r < size_; ++r) {
    if (!reach[r].empty()) {
      post(std::vector{Order{}}, r, kOrderTag);
    }
  }
  return survey;
}

// Of each rank; empty if rank 0 and it do not hear each other.
std::vector<std::string> Surveyor::collect_reach() {
  std::vector<std::string> all(size_);
  all[0] = reach();
  poll_within(2 * spec_.patience, kNap, [&] {
    while (auto letter = take<std::string>(kReachTag)) {
      all[letter->first] = std::move(letter->second);
    }
    for (std::size_t r = 0; r < size_; ++r) {
      if (reaches(r) && all[r].empty()) {
        return false;
      }
    }
    return true;
  });
  for (std::size_t r = 0; r < size_; ++r) {
    if (!reaches(r) || all[r].empty()) {
      all[r].clear();
      all[0][r] = '-';
    }
  }
  return all;
}

void Surveyor::conduct_round(const std::vector<RankPair>& pairs, Survey& survey) {
  std::optional<Order> own;
  const auto order = [&](std::size_t rank, std::size_t peer, bool measures) {
    const Order letter{static_cast<int>(peer), measures ? 1 : 0};
    if (rank == 0) {
      own = letter;
    } else {
      post(std::vector{letter}, rank, kOrderTag);
    }
  };
  for (const auto& [measures, serves] : pairs) {
    order(measures, serves, true);
    order(serves, measures, false);
  }
  if (own) {
    take_part(*own);
  }
  std::vector<RankPair> open = pairs;
  poll_within(ping_pong_.limit() + 2 * spec_.patience, kNap, [&] {
    while (const auto letter = take<Numbers>(kResultTag)) {
      const RankPair pair{letter->first, static_cast<std::size_t>(letter->second.front())};
      const auto links = links_of(letter->second);
      if (std::erase(open, pair) > 0 && links.empty()) {
        survey.silent.push_back(pair);
      }
      survey.links.insert(survey.links.end(), links.begin(), links.end());
    }
    return open.empty();
  });
  survey.silent.insert(survey.silent.end(), open.begin(), open.end());
}

bool Surveyor::settle() {
  const auto all = [&] {
    int flag = 0;
    MPI_Testall(static_cast<int>(posts_.size()), posts_.data(), &flag, MPI_STATUSES_IGNORE);
    return flag != 0;
  };
  return poll_within(spec_.patience, kNap, all) && !ping_pong_.lost();
}

}  // namespace

std::optional<Survey> survey_links(const MpiWorld& world, const SurveySpec& spec) {
  auto surveyor = std::make_unique<Surveyor>(world, spec);
  auto survey = surveyor->run();
  if (!surveyor->settle()) {
    // MPI may still read and write its memory, for as long as the process lives.
    static_cast<void>(surveyor.release());
  }
  return survey;
}

}  // namespace sluice
