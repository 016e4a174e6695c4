#include "drivers/hub/tcp_ring.h"

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "drivers/processes/ring_cost.h"
#include "drivers/tcp/exchange.h"
#include "drivers/tcp/mesh.h"

namespace sluice {
namespace {

const Duration kTurnLimit = from_us(30e6);

}  // namespace

LinkCost measure_link_over_tcp(ProcessWorld& world) {
  const auto sockets = connect_mesh(world.rank(), world.address(),
                                    [&](const std::string& own) { return world.all_gather(own); });
  if (!sockets) {
    throw std::runtime_error("the processes cannot connect over TCP: " + sockets.error().message());
  }
  const Socket& next = sockets->at((world.rank() + 1) % world.size());
  const Socket& previous = sockets->at((world.rank() + world.size() - 1) % world.size());
  // An empty message is one byte, since TCP has none.
  const auto turn = [&](std::span<const std::byte> out, std::span<std::byte> in) {
    std::array<std::byte, 1> least{};
    const auto done = out.empty() ? exchange_bytes(next, least, previous, least, kTurnLimit)
                                  : exchange_bytes(next, out, previous, in, kTurnLimit);
    if (!done) {
      throw std::runtime_error("the links cannot be measured: " + done.error().message());
    }
  };
  const auto slowest = [&](double own) {
    world.all_reduce({&own, 1, NumberType::kFloat64}, Reduction::kMax);
    return own;
  };
  return measure_ring({.turn = turn, .slowest = slowest});
}

}  // namespace sluice
