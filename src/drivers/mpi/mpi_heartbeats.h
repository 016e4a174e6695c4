#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "drivers/mpi/mpi_requests.h"
#include "drivers/realtime/clock.h"

namespace sluice {

// Heartbeats between rank 0 and every other process, for processes that wait for each other after
// training. A message is empty, or has one byte if it is the last of its sender.
class MpiHeartbeats {
 public:
  explicit MpiHeartbeats(MPI_Comm comm);

  // Takes the heartbeats that have arrived, and sends one if it is time. Throws if a process has
  // been silent for too long; that counts only while this process listens, so call this often.
  void beat();
  // Parts from the others; true when all have parted and no message is left. Call beat() and this
  // until then, and neither of them afterwards.
  bool leave();

 private:
  void listen();
  void tell_all(int bytes);
  void tell(int to, int bytes);
  void expect_all() const;

  const MPI_Comm comm_;
  const Clock clock_;
  int rank_ = 0;
  int size_ = 1;
  MpiRequests requests_;
  std::vector<Time> heard_;    // by rank
  std::vector<bool> parted_;   // by rank: has sent its last message
  Time listened_ = -kForever;  // when it did so last
  Time next_beat_{0};
  bool said_last_ = false;
};

}  // namespace sluice
