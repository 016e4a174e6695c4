#pragma once

#include <string>
#include <utility>

#include "drivers/hub/hub_frame.h"
#include "drivers/tcp/socket.h"

namespace sluice {

// One end of a connection with the hub. No call waits.
class HubLine {
 public:
  HubLine() = default;
  explicit HubLine(Socket socket) : socket_(std::move(socket)) { put_to_use(socket_); }

  bool is_open() const { return socket_.is_open(); }
  int descriptor() const { return socket_.descriptor(); }
  void close() { socket_.close(); }

  void add(const HubFrame& frame) { outgoing_ += encode(frame); }
  bool has_more_to_write() const { return !outgoing_.empty(); }

  // False if the connection is broken, or closed by the other side.
  bool write();
  // The same; what has come is in frames().
  bool read();
  HubFrameReader& frames() { return incoming_; }
  // Whether anything has come since the last call: also a part of a long text is a sign of life.
  bool take_sign() { return std::exchange(sign_, false); }

 private:
  Socket socket_;
  std::string outgoing_;
  std::size_t written_ = 0;  // of it
  HubFrameReader incoming_;
  bool sign_ = false;
};

}  // namespace sluice
