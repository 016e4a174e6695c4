#include "drivers/mpi/mpi_survey.h"

#include <mpi.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "drivers/mpi/mpi_ping_pong.h"
#include "drivers/mpi/mpi_tags.h"
#include "drivers/mpi/mpi_take.h"
#include "drivers/processes/interfaces.h"
#include "drivers/processes/launch.h"
#include "drivers/processes/overdue.h"
#include "drivers/processes/survey_messages.h"
#include "drivers/processes/survey_rounds.h"

namespace sluice {
namespace {

// 1. Every rank sends a hello to every other, so that all know whom they hear and who hears them.
// 2. Rank 0 collects from the ranks that it reaches whom they reach, and forms rounds of pairs.
// 3. In each round it orders the ranks of every pair to measure or to serve.
class Surveyor {
 public:
  Surveyor(const ProcessWorld& world, const SurveySpec& spec)
      : rank_(world.rank()),
        size_(world.size()),
        spec_(spec),
        ping_pong_(spec),
        ranks_(size_),
        hears_us_(size_, false) {}

  std::optional<Survey> run();
  // Waits for pending sends; false if some are still in flight, on this object's memory.
  bool settle();

 private:
  void hail();
  bool reaches(std::size_t peer) const {
    return peer == rank_ || (ranks_[peer].has_value() && hears_us_[peer]);
  }
  std::vector<bool> reach() const;
  void obey();
  Survey conduct();
  std::vector<std::vector<bool>> collect_reach();
  void conduct_round(const std::vector<RankPair>& pairs, Survey& survey);
  void take_part(const SurveyOrder& order);

  void post(std::string text, std::size_t to, MpiTag tag);
  // A message with this tag and its source, if one has arrived.
  static std::optional<std::pair<std::size_t, std::string>> take(MpiTag tag);

  std::size_t rank_;
  std::size_t size_;
  SurveySpec spec_;
  MpiPingPong ping_pong_;
  std::vector<std::optional<RankInfo>> ranks_;  // that this rank has heard of
  std::vector<bool> hears_us_;
  std::deque<std::string> posted_;
  std::vector<MPI_Request> posts_;  // of the same
};

void Surveyor::post(std::string text, std::size_t to, MpiTag tag) {
  const std::string& posted = posted_.emplace_back(std::move(text));
  MPI_Isend(posted.data(), static_cast<int>(posted.size()), MPI_BYTE, static_cast<int>(to), tag,
            MPI_COMM_WORLD, &posts_.emplace_back(MPI_REQUEST_NULL));
}

std::optional<std::pair<std::size_t, std::string>> Surveyor::take(MpiTag tag) {
  return take_text(MPI_COMM_WORLD, tag);
}

std::optional<Survey> Surveyor::run() {
  hail();
  if (rank_ == 0) {
    return conduct();
  }
  if (reaches(0)) {
    post(write_reach(reach()), 0, kReachTag);
    obey();
  }
  return std::nullopt;
}

void Surveyor::hail() {
  ranks_[rank_] = RankInfo{host_name(), interfaces(), boot_id()};
  const std::string hello = write_hello(*ranks_[rank_]);
  for (std::size_t r = 0; r < size_; ++r) {
    if (r != rank_) {
      post(hello, r, kHelloTag);
    }
  }
  poll_within(spec_.patience, kNap, [&] {
    while (const auto message = take(kHelloTag)) {
      ranks_[message->first] = trusted(read_hello(message->second), message->first);
      post(std::string(), message->first, kHeardTag);
    }
    while (const auto message = take(kHeardTag)) {
      hears_us_[message->first] = true;
    }
    return reach() == std::vector<bool>(size_, true);
  });
}

// By rank: whether this rank reaches it.
std::vector<bool> Surveyor::reach() const {
  std::vector<bool> reach(size_);
  for (std::size_t r = 0; r < size_; ++r) {
    reach[r] = reaches(r);
  }
  return reach;
}

// Waiting for rank 0 is safe: it always finishes, or ends this process.
void Surveyor::obey() {
  for (SurveyOrder order{.peer = 0}; order.peer;) {
    poll_until(
        [&] {
          const auto message = take(kOrderTag);
          if (message) {
            order = trusted(read_order(message->second, size_), message->first);
          }
          return message.has_value();
        },
        [] {});
    if (order.peer) {
      take_part(order);
    }
  }
}

void Surveyor::take_part(const SurveyOrder& order) {
  if (order.measures) {
    auto links = ping_pong_.measure(rank_, *order.peer).value_or(std::vector<LinkTimings>{});
    post(write_result({*order.peer, std::move(links)}), 0, kResultTag);
  } else {
    ping_pong_.serve(*order.peer);
  }
}

Survey Surveyor::conduct() {
  const std::vector<std::vector<bool>> reach = collect_reach();
  const auto denies = [&](std::size_t a, std::size_t b) {
    return !reach[a].empty() && !reach[a][b];
  };
  Survey survey;
  std::vector<std::string> machines;
  for (std::size_t r = 0; r < size_; ++r) {
    const bool known = !reach[r].empty();
    survey.ranks.push_back(known ? ranks_[r] : std::nullopt);
    machines.push_back(known ? ranks_[r]->host + " " + ranks_[r]->boot_id : "");
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
      post(write_order({}), r, kOrderTag);
    }
  }
  return survey;
}

// What each rank reaches; empty if it and rank 0 do not hear each other.
std::vector<std::vector<bool>> Surveyor::collect_reach() {
  std::vector<std::vector<bool>> all(size_);
  all[0] = reach();
  poll_within(2 * spec_.patience, kNap, [&] {
    while (const auto message = take(kReachTag)) {
      all[message->first] = trusted(read_reach(message->second, size_), message->first);
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
      all[0][r] = false;
    }
  }
  return all;
}

void Surveyor::conduct_round(const std::vector<RankPair>& pairs, Survey& survey) {
  std::optional<SurveyOrder> own;
  const auto order = [&](std::size_t rank, std::size_t peer, bool measures) {
    const SurveyOrder what{.peer = peer, .measures = measures};
    if (rank == 0) {
      own = what;
    } else {
      post(write_order(what), rank, kOrderTag);
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
    while (const auto message = take(kResultTag)) {
      const SurveyResult result =
          trusted(read_result(message->second, message->first, size_), message->first);
      const RankPair pair{message->first, result.peer};
      if (std::erase(open, pair) > 0 && result.links.empty()) {
        survey.silent.push_back(pair);
      }
      survey.links.insert(survey.links.end(), result.links.begin(), result.links.end());
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

std::optional<Survey> survey_links(const ProcessWorld& world, const SurveySpec& spec) {
  auto surveyor = std::make_unique<Surveyor>(world, spec);
  auto survey = surveyor->run();
  if (!surveyor->settle()) {
    // MPI may still read and write this memory until the process ends.
    static_cast<void>(surveyor.release());
  }
  return survey;
}

}  // namespace sluice
