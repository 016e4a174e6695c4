#include "drivers/tcp/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sluice {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const Duration kPatience = from_us(5e6);

// An all-gather between threads.
class Table {
 public:
  explicit Table(std::size_t seats) : texts_(seats) {}

  std::vector<std::string> gather(std::size_t rank, const std::string& own) {
    std::unique_lock lock(mutex_);
    texts_[rank] = own;
    const std::size_t round = round_;
    if (++come_ == texts_.size()) {
      all_ = texts_;
      come_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ > round; });
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
  std::vector<std::string> all_;
  std::size_t come_ = 0;
  std::size_t round_ = 0;
};

using Mesh = Result<std::vector<Socket>>;

// `meanwhile` hears what the first rank says of itself before the others do.
std::vector<Mesh> meshes(const std::vector<std::string>& addresses,
                         const std::function<void(const std::string& seat)>& meanwhile = {}) {
  Table table(addresses.size());
  std::vector<Mesh> results;
  for (std::size_t r = 0; r < addresses.size(); ++r) {
    results.emplace_back(Error("not done"));
  }
  std::vector<std::jthread> ranks;
  for (std::size_t r = 0; r < addresses.size(); ++r) {
    ranks.emplace_back([&, r] {
      results[r] = connect_mesh(r, addresses[r], [&](const std::string& own) {
        if (r == 0 && meanwhile && !own.empty()) {
          meanwhile(own);
        }
        return table.gather(r, own);
      });
    });
  }
  ranks.clear();
  return results;
}

TEST(TcpMeshThreadsTest, ConnectsEveryoneWithEveryone) {
  constexpr std::size_t kRanks = 5;
  const auto all = meshes(std::vector<std::string>(kRanks, "127.0.0.1"));
  for (std::size_t r = 0; r < kRanks; ++r) {
    ASSERT_TRUE(all[r]) << all[r].error().message();
    EXPECT_FALSE((*all[r])[r].is_open());
    for (std::size_t to = 0; to < kRanks; ++to) {
      if (to != r) {
        const std::array said{static_cast<std::byte>(r), static_cast<std::byte>(to)};
        EXPECT_TRUE(write_all((*all[r])[to], said, kPatience));
      }
    }
  }
  for (std::size_t r = 0; r < kRanks; ++r) {
    for (std::size_t from = 0; from < kRanks; ++from) {
      if (from != r) {
        std::array<std::byte, 2> heard{};
        EXPECT_TRUE(read_all((*all[r])[from], heard, kPatience));
        EXPECT_EQ(heard, (std::array{static_cast<std::byte>(from), static_cast<std::byte>(r)}));
      }
    }
  }
}

TEST(TcpMeshThreadsTest, FailsInAllIfItFailsInOne) {
  for (const std::string address : {"", "nonsense", "203.0.113.7"}) {
    SCOPED_TRACE(address);
    for (const auto& mesh : meshes({"127.0.0.1", address, "127.0.0.1"})) {
      ASSERT_FALSE(mesh);
      EXPECT_THAT(mesh.error().message(), HasSubstr("rank 1"));
    }
  }
}

TEST(TcpMeshThreadsTest, LeavesOutWhoIsLost) {
  constexpr std::size_t kLost = 1;
  Table table(3);
  const auto connect = [&](std::size_t rank) {
    return connect_mesh(rank, "127.0.0.1",
                        [&](const std::string& own) { return table.gather(rank, own); });
  };
  Mesh last = Error("not done");
  std::jthread other([&] { last = connect(2); });
  std::jthread lost([&] {
    table.gather(kLost, "");
    table.gather(kLost, "");
  });
  const Mesh first = connect(0);
  other.join();
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE(last) << last.error().message();
  EXPECT_TRUE((*first)[2].is_open());
  EXPECT_TRUE((*last)[0].is_open());
  EXPECT_FALSE((*first)[kLost].is_open());
  EXPECT_FALSE((*last)[kLost].is_open());
}

// They come first, say something wrong or nothing, and are turned away.
// Nobody listens any more where rank 0 said it does.
TEST(TcpMeshThreadsTest, TellsWhomItDoesNotReach) {
  const Endpoint gone = endpoint_of(*listen_at("127.0.0.1"));
  const std::string seat =
      gone.address + " " + std::to_string(gone.port) + " " + std::string(32, '0');
  std::vector<std::size_t> unreachable;
  const auto sockets = connect_mesh(
      1, "127.0.0.1",
      [round = 0, seat](const std::string& own) mutable {
        return std::vector<std::string>{round++ == 0 ? seat : "", own};
      },
      [&](std::size_t rank) { unreachable.push_back(rank); });
  EXPECT_FALSE(sockets);
  EXPECT_EQ(unreachable, std::vector<std::size_t>{0});
}

TEST(TcpMeshThreadsTest, TurnsStrangersAway) {
  std::vector<Socket> strangers;
  const auto all = meshes({"127.0.0.1", "127.0.0.1"}, [&](const std::string& seat) {
    const std::size_t space = seat.find(' ');
    const Endpoint at{seat.substr(0, space),
                      static_cast<std::uint16_t>(std::stoi(seat.substr(space + 1)))};
    const std::string token(32, '0');
    for (const std::string& said : {token + "00000001", std::string("GET / HTTP/1.1\r\n\r\n")}) {
      auto stranger = connect_to(at, kPatience);
      ASSERT_TRUE(stranger);
      EXPECT_TRUE(write_all(*stranger, std::as_bytes(std::span(said)), kPatience));
      strangers.push_back(*std::move(stranger));
    }
  });
  ASSERT_TRUE(all[0]) << all[0].error().message();
  ASSERT_TRUE(all[1]);
  for (const Socket& stranger : strangers) {
    std::array<std::byte, 1> heard{};
    const auto read = read_all(stranger, heard, kPatience);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message(), AnyOf(HasSubstr("closed"), HasSubstr("reset")));
  }
}

}  // namespace
}  // namespace sluice
