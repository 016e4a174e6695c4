#include "drivers/processes/socket_alarm.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <vector>

namespace sluice {
namespace {

const Duration kTooLong = from_us(60e6);

// Two ends of a TCP connection on this machine; neither blocks.
class Connection {
 public:
  Connection() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    bind(listener, generic, size);
    listen(listener, 1);
    getsockname(listener, generic, &size);
    near = socket(AF_INET, SOCK_STREAM, 0);
    connect(near, generic, size);
    far = accept(listener, nullptr, nullptr);
    close(listener);
    fcntl(near, F_SETFL, O_NONBLOCK);
    fcntl(far, F_SETFL, O_NONBLOCK);
  }
  ~Connection() {
    close(near);
    close(far);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int near = -1;
  int far = -1;
};

// Reads all that is there.
std::size_t drain(int socket) {
  std::array<char, 65536> buffer{};
  std::size_t total = 0;
  for (ssize_t n = 0; (n = read(socket, buffer.data(), buffer.size())) > 0;) {
    total += static_cast<std::size_t>(n);
  }
  return total;
}

TEST(SocketAlarm, CallsUntilDataIsRead) {
  const Connection connection;
  SocketAlarm alarm;
  alarm.watch(connection.near);
  ASSERT_TRUE(alarm.works());
  EXPECT_FALSE(alarm.calls());
  ASSERT_EQ(write(connection.far, "abc", 3), 3);
  alarm.sleep(kTooLong);
  EXPECT_TRUE(alarm.calls());
  EXPECT_TRUE(alarm.calls());
  EXPECT_EQ(drain(connection.near), 3U);
  EXPECT_FALSE(alarm.calls());
}

TEST(SocketAlarm, CallsWhenThereIsRoomAgain) {
  const Connection connection;
  SocketAlarm alarm;
  alarm.watch(connection.near);
  EXPECT_FALSE(alarm.calls());
  const std::vector<char> block(65536);
  while (write(connection.near, block.data(), block.size()) > 0) {
  }
  EXPECT_FALSE(alarm.calls());
  // TCP moves what the peer's buffer has room for, some time after the peer has read.
  bool called = false;
  for (int turn = 0; turn < 1'000'000 && !called; ++turn) {
    drain(connection.far);
    called = alarm.calls();
  }
  EXPECT_TRUE(called);
  EXPECT_GT(write(connection.near, block.data(), block.size()), 0);
}

TEST(SocketAlarm, WakesOnRequestWithoutACall) {
  const Connection connection;
  SocketAlarm alarm;
  alarm.watch(connection.near);
  alarm.wake();
  alarm.sleep(kTooLong);
  EXPECT_FALSE(alarm.calls());
  alarm.pause(kTooLong);
  alarm.wake();
  alarm.sleep(kTooLong);
  EXPECT_FALSE(alarm.calls());
}

TEST(SocketAlarm, DoesNotListenInAPause) {
  const Connection connection;
  SocketAlarm alarm;
  alarm.watch(connection.near);
  ASSERT_EQ(write(connection.far, "abc", 3), 3);
  EXPECT_TRUE(alarm.calls());
  alarm.pause(kTooLong);
  EXPECT_FALSE(alarm.calls());
  alarm.pause(Duration(0));
  EXPECT_TRUE(alarm.calls());
}

TEST(SocketAlarm, CallsOnceAfterASleepWithoutEvents) {
  SocketAlarm alarm;
  alarm.sleep(from_us(1));
  EXPECT_TRUE(alarm.calls());
  EXPECT_FALSE(alarm.calls());
}

TEST(SocketAlarm, ConnectionsWithinTheMachineDoNotCount) {
  const Connection connection;
  EXPECT_NE(watch_sockets(0), nullptr);
  EXPECT_EQ(watch_sockets(1), nullptr);
}

}  // namespace
}  // namespace sluice
