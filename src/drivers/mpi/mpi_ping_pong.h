#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "drivers/mpi/mpi_survey.h"
#include "drivers/processes/ping_pong.h"
#include "drivers/realtime/clock.h"

namespace sluice {

// Measures the link between this rank and another by ping-pongs over MPI. If a peer is lost, its
// operations stay posted, on memory that lives as long as this object.
class MpiPingPong {
 public:
  explicit MpiPingPong(const SurveySpec& spec);

  // Measures both directions while the peer serves; none if an answer did not come in time.
  std::optional<std::vector<LinkTimings>> measure(std::size_t self, std::size_t peer);
  // Answers until the peer has finished measuring, or is silent for too long.
  void serve(std::size_t peer);

  // An upper bound on how long measure() or serve() takes.
  Duration limit() const { return ping_pong_limit(spec_); }
  // Whether anything is still in flight to or from a peer that did not answer.
  bool lost() const { return lost_; }

 private:
  std::optional<Duration> exchange(int peer, const PingPongCommand& command);
  bool complete(std::span<MPI_Request> requests);

  SurveySpec spec_;
  Clock clock_;
  bool lost_ = false;
  PingPongCommand command_;
  std::vector<std::byte> payload_;
};

}  // namespace sluice
