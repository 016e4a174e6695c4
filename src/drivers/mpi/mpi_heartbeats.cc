#include "drivers/mpi/mpi_heartbeats.h"

#include <algorithm>
#include <stdexcept>

#include "drivers/mpi/mpi_tags.h"
#include "drivers/processes/heartbeat.h"

namespace sluice {
namespace {

constexpr int kAlive = 0;
constexpr int kLast = 1;
// What a message that is not empty contains.
constexpr char kByte = 0;

}  // namespace

MpiHeartbeats::MpiHeartbeats(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  parted_.assign(static_cast<std::size_t>(size_), false);
  parted_[static_cast<std::size_t>(rank_)] = true;
}

void MpiHeartbeats::beat() {
  const Time now = clock_.now();
  if (now - listened_ > kBeat) {
    heard_.assign(static_cast<std::size_t>(size_), now);
  }
  listened_ = now;
  listen();
  requests_.test();
  if (now < next_beat_) {
    return;
  }
  next_beat_ = now + kBeat;
  if (!said_last_) {
    tell_all(kAlive);
  }
  expect_all();
}

// Rank 0 sends the last message of all, and the messages of each pair arrive in order. So no
// message is left when all have parted.
bool MpiHeartbeats::leave() {
  const bool heard_last =
      rank_ == 0 ? std::ranges::count(parted_, true) == size_ : static_cast<bool>(parted_[0]);
  if (!said_last_ && (rank_ != 0 || heard_last)) {
    tell_all(kLast);
    said_last_ = true;
  }
  return said_last_ && heard_last && requests_.empty();
}

void MpiHeartbeats::listen() {
  for (;;) {
    int here = 0;
    MPI_Status status{};
    MPI_Iprobe(MPI_ANY_SOURCE, kHeartbeatTag, comm_, &here, &status);
    if (here == 0) {
      return;
    }
    char byte = kByte;
    MPI_Recv(&byte, kLast, MPI_CHAR, status.MPI_SOURCE, kHeartbeatTag, comm_, &status);
    int bytes = 0;
    MPI_Get_count(&status, MPI_CHAR, &bytes);
    const auto rank = static_cast<std::size_t>(status.MPI_SOURCE);
    heard_[rank] = clock_.now();
    parted_[rank] = bytes == kLast;
  }
}

void MpiHeartbeats::tell_all(int bytes) {
  if (rank_ != 0) {
    return tell(0, bytes);
  }
  for (int r = 1; r < size_; ++r) {
    tell(r, bytes);
  }
}

void MpiHeartbeats::tell(int to, int bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(&kByte, bytes, MPI_CHAR, to, kHeartbeatTag, comm_, &request);
  requests_.add(request, [](const MPI_Status&) {});
}

void MpiHeartbeats::expect_all() const {
  const std::size_t end = rank_ == 0 ? heard_.size() : 1;
  for (std::size_t r = 0; r < end; ++r) {
    const Duration silence = clock_.now() - heard_[r];
    if (!parted_[r] && silence > kSilence) {
      throw std::runtime_error(describe_silence(r, "", silence));
    }
  }
}

}  // namespace sluice
