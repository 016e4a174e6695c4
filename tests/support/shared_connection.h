#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

// Other processes' connections, which a test may break as a network would.
namespace sluice {

// The processes with all of these variables, each "NAME=VALUE".
inline std::vector<pid_t> processes_with(const std::vector<std::string>& variables) {
  std::vector<pid_t> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    std::ifstream in(entry.path() / "environ");
    const std::string environment =
        std::string(1, '\0') + std::string(std::istreambuf_iterator<char>(in), {});
    bool has_all = true;
    for (const std::string& variable : variables) {
      const std::string whole = std::string(1, '\0') + variable + std::string(1, '\0');
      has_all = has_all && environment.find(whole) != std::string::npos;
    }
    if (has_all) {
      found.push_back(std::stoi(name));
    }
  }
  return found;
}

// A copy of one end of a TCP connection of another process.
struct BorrowedSocket {
  int descriptor;
  std::array<std::string, 2> ends;  // here and there
};

inline std::vector<BorrowedSocket> sockets_of(pid_t process) {
  std::vector<BorrowedSocket> sockets;
  const auto whole = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", none)) {
    const auto copy =
        static_cast<int>(syscall(SYS_pidfd_getfd, whole, std::stoi(entry.path().filename()), 0));
    BorrowedSocket socket{copy, {}};
    bool is_connected = copy >= 0;
    for (std::size_t end = 0; end < 2 && is_connected; ++end) {
      sockaddr_in address{};
      socklen_t size = sizeof address;
      auto* const generic = reinterpret_cast<sockaddr*>(&address);
      is_connected =
          (end == 0 ? getsockname(copy, generic, &size) : getpeername(copy, generic, &size)) == 0 &&
          address.sin_family == AF_INET;
      socket.ends.at(end).assign(reinterpret_cast<const char*>(&address.sin_port),
                                 sizeof address.sin_port + sizeof address.sin_addr);
    }
    if (is_connected) {
      sockets.push_back(socket);
    } else if (copy >= 0) {
      close(copy);
    }
  }
  close(whole);
  return sockets;
}

// Breaks the connections between processes with one set of variables and those with the other;
// returns how many there were.
inline int break_connections(const std::vector<std::string>& one,
                             const std::vector<std::string>& other) {
  std::array<std::vector<BorrowedSocket>, 2> sockets;
  for (std::size_t side = 0; side < 2; ++side) {
    for (const pid_t process : processes_with(side == 0 ? one : other)) {
      const auto more = sockets_of(process);
      sockets.at(side).insert(sockets.at(side).end(), more.begin(), more.end());
    }
  }
  int broken = 0;
  for (const BorrowedSocket& a : sockets[0]) {
    for (const BorrowedSocket& b : sockets[1]) {
      if (a.ends[0] == b.ends[1] && a.ends[1] == b.ends[0]) {
        broken += shutdown(a.descriptor, SHUT_RDWR) == 0 ? 1 : 0;
      }
    }
  }
  for (const auto& side : sockets) {
    for (const BorrowedSocket& socket : side) {
      close(socket.descriptor);
    }
  }
  return broken;
}

}  // namespace sluice
