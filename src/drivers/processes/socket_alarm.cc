#include "drivers/processes/socket_alarm.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "drivers/realtime/open_descriptors.h"
#include "drivers/realtime/timespec.h"

namespace sluice {
namespace {

// An address of the machine at the other end, as bytes; none if this is not a TCP connection with
// another machine.
std::optional<std::string> other_machine(int descriptor) {
  int type = 0;
  socklen_t length = sizeof type;
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM ||
      getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    return std::nullopt;
  }
  const auto bytes = [](const auto& address) {
    return std::string(reinterpret_cast<const char*>(&address), sizeof address);
  };
  if (peer.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &peer, sizeof in);
    const bool loopback = ntohl(in.sin_addr.s_addr) >> 24U == IN_LOOPBACKNET;
    return loopback ? std::nullopt : std::optional(bytes(in.sin_addr));
  }
  if (peer.ss_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &peer, sizeof in);
    return IN6_IS_ADDR_LOOPBACK(&in.sin6_addr) ? std::nullopt : std::optional(bytes(in.sin6_addr));
  }
  return std::nullopt;
}

}  // namespace

// Data calls until it is read: its events are level-triggered. There is nearly always room, and it
// calls only when it comes back: its events are edge-triggered.
SocketAlarm::SocketAlarm()
    : queue_(epoll_create1(EPOLL_CLOEXEC)),
      rooms_(epoll_create1(EPOLL_CLOEXEC)),
      awoken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  add(queue_, rooms_, EPOLLIN | EPOLLET);
  add(queue_, awoken_, EPOLLIN);
}

SocketAlarm::~SocketAlarm() {
  close(queue_);
  close(rooms_);
  close(awoken_);
}

void SocketAlarm::watch(int socket) {
  add(queue_, socket, EPOLLIN);
  add(rooms_, socket, EPOLLOUT | EPOLLET);
  wait(Duration(0));  // the room that is there now
}

void SocketAlarm::add(int queue, int descriptor, std::uint32_t events) {
  epoll_event wanted{.events = events, .data = {.fd = descriptor}};
  works_ = epoll_ctl(queue, EPOLL_CTL_ADD, descriptor, &wanted) == 0 && works_;
}

void SocketAlarm::wake() { eventfd_write(awoken_, 1); }

void SocketAlarm::sleep(Duration limit) { calls_ = pass_pause() && wait(limit); }

bool SocketAlarm::calls() {
  return std::exchange(calls_, false) || (clock_.now() >= paused_until_ && wait(Duration(0)));
}

// False if wake() ended it.
bool SocketAlarm::pass_pause() {
  const Duration left = paused_until_ - clock_.now();
  if (left <= Duration(0)) {
    return true;
  }
  const timespec time = to_timespec(left);
  pollfd wanted{.fd = awoken_, .events = POLLIN, .revents = 0};
  eventfd_t wakes = 0;
  return ppoll(&wanted, 1, &time, nullptr) <= 0 || eventfd_read(awoken_, &wakes) != 0;
}

// Whether a connection calls, or time has passed without any event.
bool SocketAlarm::wait(Duration limit) {
  const timespec time = to_timespec(limit);
  std::array<epoll_event, 16> events{};
  const int count =
      epoll_pwait2(queue_, events.data(), static_cast<int>(events.size()), &time, nullptr);
  works_ = works_ && (count >= 0 || errno == EINTR);
  bool calls = count == 0 && limit > Duration(0);
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<std::size_t>(i)].data.fd == awoken_) {
      eventfd_t wakes = 0;
      eventfd_read(awoken_, &wakes);
    } else {
      calls = true;
    }
  }
  return calls;
}

std::shared_ptr<SocketAlarm> watch_sockets(std::size_t addresses) {
  auto alarm = std::make_shared<SocketAlarm>();
  std::set<std::string> found;
  for (const int descriptor : open_descriptors()) {
    if (const auto address = other_machine(descriptor)) {
      found.insert(*address);
      alarm->watch(descriptor);
    }
  }
  return found.size() >= addresses && alarm->works() ? alarm : nullptr;
}

}  // namespace sluice
