#include "drivers/tcp/exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sluice {
namespace {

// Moves what can be moved now; an error if the connection is broken.
template <class Bytes, class Move>
Result<void> move_some(Bytes& bytes, Move move) {
  while (!bytes.empty()) {
    const ssize_t count = move(bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return {};
    }
    if (count <= 0) {
      return Error(count == 0 ? "the other side closed the connection" : std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace

Result<void> exchange_bytes(const Socket& to, std::span<const std::byte> out, const Socket& from,
                            std::span<std::byte> in, Duration limit) {
  while (!out.empty() || !in.empty()) {
    std::array<pollfd, 2> wanted{
        pollfd{to.descriptor(), static_cast<short>(out.empty() ? 0 : POLLOUT), 0},
        pollfd{from.descriptor(), static_cast<short>(in.empty() ? 0 : POLLIN), 0}};
    if (poll(wanted.data(), wanted.size(), static_cast<int>(to_us(limit) / 1e3)) == 0) {
      return Error("the other side is silent");
    }
    auto moved = move_some(out, [&](std::span<const std::byte> bytes) {
      return send(to.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    });
    if (moved) {
      moved = move_some(in, [&](std::span<std::byte> bytes) {
        return recv(from.descriptor(), bytes.data(), bytes.size(), 0);
      });
    }
    if (!moved) {
      return moved;
    }
  }
  return {};
}

}  // namespace sluice
