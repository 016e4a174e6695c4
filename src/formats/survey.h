#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "formats/document.h"
#include "model/timing.h"

namespace sluice {

// What the ranks of a job find out about the network between them.

// An IPv4 address of a machine, other than loopback.
struct Interface {
  std::string name;
  std::string address;         // 10.77.0.1
  int prefix = 32;             // length of the network part
  std::optional<double> gbps;  // if the hardware reports its rate

  // 10.77.0.0/24
  std::string network() const;

  bool operator==(const Interface&) const = default;
};

// What a rank tells of itself.
struct RankInfo {
  std::string host;
  std::vector<Interface> interfaces;
  std::string boot_id = {};  // from the kernel; tells two machines with the same host name apart

  bool same_machine(const RankInfo& other) const {
    return host == other.host && boot_id == other.boot_id;
  }

  bool operator==(const RankInfo&) const = default;
};

Json to_json(const RankInfo& info);
// The inverse. The input is checked: it may come from anyone.
Result<RankInfo> rank_info_of(const Json& json);

// Messages of several sizes from one rank to another, each timed with its empty reply. The smallest
// message is empty too, so its time is a round trip.
struct LinkTimings {
  std::size_t from = 0;
  std::size_t to = 0;
  std::vector<Timing> timings;  // in ascending order of size
};

using RankPair = std::pair<std::size_t, std::size_t>;  // the lower rank first

// How thoroughly to measure a link: sizes grow fourfold until a message takes `enough`.
struct SurveySpec {
  Duration enough{0};
  int repetitions = 5;                          // per size
  Duration patience = std::chrono::seconds(5);  // how long to wait for a reply
};

struct Survey {
  // By rank; none if rank 0 and this rank cannot reach each other.
  std::vector<std::optional<RankInfo>> ranks;
  std::vector<RankPair> silent;    // pairs where no reply came in time
  std::vector<LinkTimings> links;  // the other pairs that rank 0 could ask to measure

  // "rank 2 on h2", or "rank 2" if its host is unknown.
  std::string name(std::size_t rank) const;
  // A rank whose host is unknown counts as a machine of its own.
  bool same_machine(std::size_t a, std::size_t b) const;
};

}  // namespace sluice
