#include "drivers/mpi/mpi_ping_pong.h"

#include <array>
#include <chrono>
#include <utility>

#include "drivers/mpi/mpi_tags.h"
#include "drivers/processes/overdue.h"
#include "wire/bad_message.h"

namespace sluice {
namespace {

constexpr std::chrono::microseconds kNoNap{0};

}  // namespace

MpiPingPong::MpiPingPong(const SurveySpec& spec)
    : spec_(spec), payload_(static_cast<std::size_t>(kMaxPingPongBytes)) {}

std::optional<std::vector<LinkTimings>> MpiPingPong::measure(std::size_t self, std::size_t peer) {
  const auto other = static_cast<int>(peer);
  auto links = measure_both_ways(
      spec_, self, peer, [&](const PingPongCommand& command) { return exchange(other, command); });
  if (!links) {
    return std::nullopt;
  }
  command_ = {.out = -1};
  std::array<MPI_Request, 1> request{};
  MPI_Isend(&command_, sizeof command_, MPI_BYTE, other, kCommandTag, MPI_COMM_WORLD,
            request.data());
  return complete(request) ? std::move(links) : std::nullopt;
}

std::optional<Duration> MpiPingPong::exchange(int peer, const PingPongCommand& command) {
  command_ = command;
  std::array<MPI_Request, 3> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  const Time begin = clock_.now();
  MPI_Irecv(payload_.data(), static_cast<int>(command.back), MPI_BYTE, peer, kAnswerTag,
            MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&command_, sizeof command_, MPI_BYTE, peer, kCommandTag, MPI_COMM_WORLD, &requests[1]);
  if (command.out > 0) {
    MPI_Isend(payload_.data(), static_cast<int>(command.out), MPI_BYTE, peer, kPingPongTag,
              MPI_COMM_WORLD, &requests[2]);
  }
  if (!complete(requests)) {
    return std::nullopt;
  }
  return clock_.now() - begin;
}

bool MpiPingPong::complete(std::span<MPI_Request> requests) {
  const auto all = [&] {
    int flag = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE);
    return flag != 0;
  };
  const bool done = poll_within(spec_.patience, kNoNap, all);
  lost_ = lost_ || !done;
  return done;
}

void MpiPingPong::serve(std::size_t peer) {
  const auto other = static_cast<int>(peer);
  std::array<MPI_Request, 1> request{};
  for (const Time end = clock_.now() + limit(); clock_.now() < end;) {
    MPI_Irecv(&command_, sizeof command_, MPI_BYTE, other, kCommandTag, MPI_COMM_WORLD,
              request.data());
    if (!complete(request)) {
      return;
    }
    if (const auto legal = check_command(command_); !legal) {
      throw BadMessage(peer, legal.error().message());
    }
    if (command_.out < 0) {
      return;
    }
    if (command_.out > 0) {
      MPI_Irecv(payload_.data(), static_cast<int>(command_.out), MPI_BYTE, other, kPingPongTag,
                MPI_COMM_WORLD, request.data());
      if (!complete(request)) {
        return;
      }
    }
    MPI_Isend(payload_.data(), static_cast<int>(command_.back), MPI_BYTE, other, kAnswerTag,
              MPI_COMM_WORLD, request.data());
    if (!complete(request)) {
      return;
    }
  }
}

}  // namespace sluice
