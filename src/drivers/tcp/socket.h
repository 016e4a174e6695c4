#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/units.h"

namespace sluice {

// A TCP socket, closed with its owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  void close();

 private:
  int descriptor_ = -1;
};

// Where a process listens.
struct Endpoint {
  std::string address;  // IPv4, with dots
  std::uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};

// Listens at this address, on a port that the kernel chooses.
Result<Socket> listen_at(const std::string& address);
// Where a socket listens.
Endpoint endpoint_of(const Socket& listening);
// Waits no longer than `limit` for the other side's kernel.
Result<Socket> connect_to(const Endpoint& endpoint, Duration limit);
// The next connection; waits no longer than `limit`.
Result<Socket> accept_at(const Socket& listening, Duration limit);

// Whole blocks, with a limit for each wait. These are for greetings: a connection in use never
// blocks.
Result<void> write_all(const Socket& socket, std::span<const std::byte> bytes, Duration limit);
Result<void> read_all(const Socket& socket, std::span<std::byte> bytes, Duration limit);

// From now on calls return at once, and short messages leave at once.
void put_to_use(const Socket& socket);

// The address of this machine that most TCP connections of this process with other machines use,
// counted by machine; empty if there is none. With MPI over TCP it belongs to the interface that
// MPI was told to use.
std::string address_in_use();

}  // namespace sluice
