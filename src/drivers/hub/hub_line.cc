#include "drivers/hub/hub_line.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace sluice {
namespace {

bool is_passing(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

bool HubLine::write() {
  while (written_ < outgoing_.size()) {
    const ssize_t count = send(socket_.descriptor(), outgoing_.data() + written_,
                               outgoing_.size() - written_, MSG_NOSIGNAL);
    if (count < 0) {
      return is_passing(errno);
    }
    written_ += static_cast<std::size_t>(count);
  }
  outgoing_.clear();
  written_ = 0;
  return true;
}

bool HubLine::read() {
  std::array<char, 1 << 16> part{};
  for (;;) {
    const ssize_t count = recv(socket_.descriptor(), part.data(), part.size(), 0);
    if (count <= 0) {
      return count < 0 && is_passing(errno);
    }
    incoming_.add({part.data(), static_cast<std::size_t>(count)});
    sign_ = true;
  }
}

}  // namespace sluice
