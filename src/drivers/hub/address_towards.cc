#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>

#include "drivers/hub/hub.h"

namespace sluice {

Result<std::string> address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int fault = getaddrinfo(host.c_str(), "9", &hints, &found); fault != 0) {
    return Error(fmt::format("{}: {}", host, gai_strerror(fault)));
  }
  const Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const bool reached = connect(socket.descriptor(), found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (!reached || getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return Error(fmt::format("{}: no route to this host", host));
  }
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &own.sin_addr, text.data(), text.size());
  return std::string(text.data());
}

}  // namespace sluice
