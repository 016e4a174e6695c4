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

// An IPv4 address of a machine, loopback not counted.
struct Interface {
  std::string name;
  std::string address;         // 10.77.0.1
  int prefix = 32;             // length of the network's part of it
  std::optional<double> gbps;  // of hardware that tells its rate

  // 10.77.0.0/24
  std::string network() const;

  bool operator==(const Interface&) const = default;
};

struct Member {
  std::string host;
  std::vector<Interface> interfaces;
  std::string boot_id = {};  // of the machine's kernel, which two hosts of one name do not share

  bool same_machine(const Member& other) const {
    return host == other.host && boot_id == other.boot_id;
  }

  bool operator==(const Member&) const = default;
};

Json to_json(const Member& member);
// The inverse. The text may come from anyone.
Result<Member> member_of(const Json& json);

// Messages of several sizes from one rank to another, each with the empty answer that it got. The
// smallest is empty too, so that its time is a round trip.
struct LinkTimings {
  std::size_t from = 0;
  std::size_t to = 0;
  std::vector<Timing> timings;  // by rising size
};

using RankPair = std::pair<std::size_t, std::size_t>;  // the lower rank first

// How long to look at a link: sizes rise fourfold until a message takes `enough`.
struct SurveySpec {
  Duration enough{0};
  int repetitions = 5;                          // of each size
  Duration patience = std::chrono::seconds(5);  // for an answer
};

struct Survey {
  // By rank; none: rank 0 and it do not hear each other.
  std::vector<std::optional<Member>> members;
  std::vector<RankPair> silent;    // pairs between which no answer came in time
  std::vector<LinkTimings> links;  // of the others that rank 0 could order to measure

  // "rank 2 on h2", or "rank 2" if its host is not known.
  std::string name(std::size_t rank) const;
  // A rank whose host is not known is taken to be on a machine of its own.
  bool same_machine(std::size_t a, std::size_t b) const;
};

}  // namespace sluice
