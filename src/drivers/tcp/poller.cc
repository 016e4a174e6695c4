#include "drivers/tcp/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "drivers/realtime/timespec.h"

namespace sluice {
namespace {

constexpr std::uint64_t kAwoken = std::numeric_limits<std::uint64_t>::max();

void add(int queue, int descriptor, std::uint32_t events, std::uint64_t index) {
  epoll_event wanted{.events = events, .data = {.u64 = index}};
  if (epoll_ctl(queue, EPOLL_CTL_ADD, descriptor, &wanted) != 0) {
    throw std::runtime_error(std::string("cannot wait for a connection: ") + std::strerror(errno));
  }
}

}  // namespace

Poller::Poller()
    : queue_(epoll_create1(EPOLL_CLOEXEC)), awoken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  add(queue_, awoken_, EPOLLIN | EPOLLET, kAwoken);
}

Poller::~Poller() {
  close(queue_);
  close(awoken_);
}

void Poller::watch(int socket, std::size_t index, bool reads, bool writes) {
  const std::uint32_t in = reads ? EPOLLIN | EPOLLRDHUP : 0U;
  add(queue_, socket, in | (writes ? EPOLLOUT : 0U) | EPOLLET, index);
}

void Poller::wake() { eventfd_write(awoken_, 1); }

void Poller::sleep(Duration limit) {
  if (found_.empty()) {
    wait(limit);
  }
}

const std::vector<Poller::Ready>& Poller::ready() {
  wait(Duration(0));
  told_.swap(found_);
  found_.clear();
  return told_;
}

void Poller::wait(Duration limit) {
  const timespec time = to_timespec(limit);
  std::array<epoll_event, 64> events{};
  const auto size = static_cast<int>(events.size());
  int count = epoll_pwait2(queue_, events.data(), size, &time, nullptr);
  if (count < 0 && errno == ENOSYS) {  // Linux before 5.11
    const auto ms = static_cast<int>(std::ceil(to_us(limit) / 1e3));
    count = epoll_wait(queue_, events.data(), size, ms);
  }
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 != kAwoken) {
      constexpr std::uint32_t kEnds = EPOLLHUP | EPOLLERR;
      found_.push_back({static_cast<std::size_t>(event.data.u64),
                        (event.events & (EPOLLIN | EPOLLRDHUP | kEnds)) != 0,
                        (event.events & (EPOLLOUT | kEnds)) != 0});
    }
  }
}

}  // namespace sluice
