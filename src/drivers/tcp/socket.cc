#include "drivers/tcp/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "drivers/realtime/open_descriptors.h"

namespace sluice {
namespace {

constexpr int kBacklog = 1024;

Error system_error(const std::string& what) {
  return Error(fmt::format("{}: {}", what, std::strerror(errno)));
}

int milliseconds(Duration limit) {
  return static_cast<int>(std::max<std::int64_t>(1, static_cast<std::int64_t>(to_us(limit) / 1e3)));
}

std::optional<sockaddr_in> socket_address(const Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  const bool valid = inet_pton(AF_INET, endpoint.address.c_str(), &address.sin_addr) == 1;
  return valid ? std::optional(address) : std::nullopt;
}

std::string text_of(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

bool becomes_ready(const Socket& socket, short events, Duration limit) {
  pollfd wanted{.fd = socket.descriptor(), .events = events, .revents = 0};
  return poll(&wanted, 1, milliseconds(limit)) > 0;
}

// One end of a TCP connection over IPv4; none if the descriptor is something else.
template <class Name>
std::optional<sockaddr_in> end_of(int descriptor, Name name) {
  int type = 0;
  socklen_t length = sizeof type;
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM ||
      name(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      address.sin_family != AF_INET) {
    return std::nullopt;
  }
  return address;
}

}  // namespace

void Socket::close() {
  if (is_open()) {
    ::close(std::exchange(descriptor_, -1));
  }
}

Result<Socket> listen_at(const std::string& address) {
  const auto where = socket_address({address, 0});
  if (!where) {
    return Error(fmt::format("\"{}\" is no IPv4 address", address));
  }
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() || bind(socket.descriptor(), generic(*where), sizeof *where) != 0 ||
      listen(socket.descriptor(), kBacklog) != 0) {
    return system_error("cannot listen at " + address);
  }
  return socket;
}

Endpoint endpoint_of(const Socket& listening) {
  const auto address = end_of(listening.descriptor(), getsockname).value_or(sockaddr_in{});
  return {text_of(address), ntohs(address.sin_port)};
}

// Linux applies the limit for sends to connecting too.
Result<Socket> connect_to(const Endpoint& endpoint, Duration limit) {
  const auto where = socket_address(endpoint);
  if (!where) {
    return Error(fmt::format("\"{}\" is no IPv4 address", endpoint.address));
  }
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int ms = milliseconds(limit);
  const timeval time{.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  if (!socket.is_open() || connect(socket.descriptor(), generic(*where), sizeof *where) != 0) {
    return system_error(fmt::format("cannot connect to {}:{}", endpoint.address, endpoint.port));
  }
  return socket;
}

Result<Socket> accept_at(const Socket& listening, Duration limit) {
  if (!becomes_ready(listening, POLLIN, limit)) {
    return Error(fmt::format("nobody connected within {:.0f} s", to_seconds(limit)));
  }
  Socket socket(accept4(listening.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  return socket.is_open() ? Result<Socket>(std::move(socket)) : system_error("cannot accept");
}

Result<void> write_all(const Socket& socket, std::span<const std::byte> bytes, Duration limit) {
  while (!bytes.empty()) {
    if (!becomes_ready(socket, POLLOUT, limit)) {
      return Error("the other side does not read");
    }
    const ssize_t count = send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) {
      return system_error("cannot write");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> read_all(const Socket& socket, std::span<std::byte> bytes, Duration limit) {
  while (!bytes.empty()) {
    if (!becomes_ready(socket, POLLIN, limit)) {
      return Error("the other side is silent");
    }
    const ssize_t count = recv(socket.descriptor(), bytes.data(), bytes.size(), 0);
    if (count < 0) {
      return system_error("cannot read");
    }
    if (count == 0) {
      return Error("the other side closed the connection");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

void put_to_use(const Socket& socket) {
  const int on = 1;
  setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket.descriptor(), F_SETFL, fcntl(socket.descriptor(), F_GETFL) | O_NONBLOCK);
}

std::string address_in_use() {
  std::map<std::string, std::set<std::string>> peers;  // by the address here
  for (const int descriptor : open_descriptors()) {
    const auto here = end_of(descriptor, getsockname);
    const auto there = end_of(descriptor, getpeername);
    if (here && there && text_of(*here) != text_of(*there) &&
        ntohl(there->sin_addr.s_addr) >> 24U != IN_LOOPBACKNET) {
      peers[text_of(*here)].insert(text_of(*there));
    }
  }
  const auto most =
      std::ranges::max_element(peers, {}, [](const auto& entry) { return entry.second.size(); });
  return most == peers.end() ? "" : most->first;
}

}  // namespace sluice
