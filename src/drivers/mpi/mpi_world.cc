#include "drivers/mpi/mpi_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "drivers/mpi/mpi_collectives.h"
#include "drivers/mpi/mpi_heartbeats.h"
#include "drivers/mpi/mpi_letters.h"
#include "drivers/mpi/mpi_link.h"
#include "drivers/mpi/mpi_long_messages.h"
#include "drivers/mpi/mpi_requests.h"
#include "drivers/mpi/mpi_start.h"
#include "drivers/mpi/mpi_tags.h"
#include "drivers/mpi/mpi_transport.h"
#include "drivers/mpi/mpi_window.h"
#include "drivers/processes/interfaces.h"
#include "drivers/processes/launch.h"
#include "drivers/processes/overdue.h"
#include "drivers/realtime/start_thread.h"
#include "drivers/tcp/socket.h"
#include "wire/bad_message.h"

namespace sluice {
namespace {

// The pause between two looks for heartbeats.
constexpr std::chrono::milliseconds kBetweenBeats{10};

std::vector<std::size_t> ranks_without(const std::vector<bool>& here) {
  std::vector<std::size_t> missing;
  for (std::size_t r = 0; r < here.size(); ++r) {
    if (!here[r]) {
      missing.push_back(r);
    }
  }
  return missing;
}

class JoinedWorld final : public ProcessWorld {
 public:
  JoinedWorld(Warn warn, Fail fail, MpiStart start, MpiLife life, std::size_t block_bytes)
      : warn_(std::move(warn)),
        fail_(std::move(fail)),
        shared_(start == MpiStart::kBefore),
        finalises_(start == MpiStart::kHere && life == MpiLife::kWorld),
        block_bytes_(block_bytes) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    if (shared_) {
      const Overdue watch([this] {
        warn_(fmt::format("{} still waits for all processes to join", rank_on_host(rank())));
      });
      MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    }
  }
  ~JoinedWorld() override {
    if (heartbeats_ && (shared_ || finalises_)) {
      wait_until([&] { return heartbeats_->leave(); }, [] {});
    }
    if (shared_) {
      MPI_Comm_free(&comm_);  // with a message in it, MPI would spoil the next one
    }
    if (finalises_) {
      finalise();
    }
  }
  JoinedWorld(const JoinedWorld&) = delete;
  JoinedWorld& operator=(const JoinedWorld&) = delete;

  std::size_t rank() const override { return static_cast<std::size_t>(rank_); }
  std::size_t size() const override { return static_cast<std::size_t>(size_); }

  std::vector<std::string> gather(const std::string& text, const std::string& what) override {
    if (rank_ != 0) {
      send({0}, text, what);
      return {};
    }
    std::vector<std::string> texts(size());
    std::vector<bool> here(size(), false);
    texts[0] = text;
    here[0] = true;
    // A rank that has been heard may be in the next gather already: its next text is not for this
    // one.
    for (auto missing = ranks_without(here); !missing.empty(); missing = ranks_without(here)) {
      auto [from, received] = receive(missing, [&] {
        warn_(fmt::format("still waiting for {} of rank {}", what, fmt::join(missing, ", ")));
      });
      texts[from] = std::move(received);
      here[from] = true;
    }
    return texts;
  }

  std::string broadcast(const std::string& text, const std::string& what) override {
    if (rank_ != 0) {
      return receive({0},
                     [&] {
                       warn_(fmt::format("{} still waits for {} of rank 0", rank_on_host(rank()),
                                         what));
                     })
          .second;
    }
    std::vector<int> others;
    for (int r = 1; r < size_; ++r) {
      others.push_back(r);
    }
    send(others, text, what);
    return text;
  }

  std::string scatter(const std::vector<std::string>& texts, const std::string& what) override {
    if (rank_ != 0) {
      return broadcast("", what);  // nobody can tell whom else a text is for
    }
    for (int r = 1; r < size_; ++r) {
      send({r}, texts.at(static_cast<std::size_t>(r)), what);
    }
    return texts.at(0);
  }

  void meet() override {
    std::vector<bool> here(size(), false);
    here[static_cast<std::size_t>(rank_)] = true;
    MpiRequests requests;
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Irecv(nullptr, 0, MPI_BYTE, r, kMeetTag, comm_, &request);
        requests.add(request, [&here, r](const MPI_Status&) { here[r] = true; });
        MPI_Isend(nullptr, 0, MPI_BYTE, r, kMeetTag, comm_, &request);
        requests.add(request, [](const MPI_Status&) {});
      }
    }
    const auto done = [&] {
      requests.test();
      return requests.empty();
    };
    wait_until(done, [&] {
      warn_(
          fmt::format("{} has not heard of rank {} yet: sluice doctor --net tells which links "
                      "are at fault",
                      rank_on_host(rank()), fmt::join(ranks_without(here), ", ")));
    });
  }

  LinkCost measure_link() override {
    const Overdue watch([&] {
      warn_(fmt::format("{} still measures its links with its neighbours", rank_on_host(rank())));
    });
    return measure_ring(comm_);
  }

  std::vector<std::size_t> machines() override {
    std::vector<int> first(size());
    const int own = first_sharing_memory(comm_);
    MPI_Allgather(&own, 1, MPI_INT, first.data(), 1, MPI_INT, comm_);
    return {first.begin(), first.end()};
  }

  std::string address() const override { return address_in_use(); }
  std::optional<LongMessages> long_messages() const override { return long_messages_set(); }
  std::unique_ptr<PeerTransport> make_transport(const TransportSpec& spec) override {
    return std::make_unique<MpiTransport>(spec);
  }
  std::unique_ptr<Letters> open_letters() override { return std::make_unique<MpiLetters>(); }

  void all_reduce(const Numbers& numbers, Reduction reduction) override {
    sluice::all_reduce(comm_, numbers, reduction, waiting("an all-reduce"));
  }
  void broadcast_from(std::size_t root, std::span<std::byte> bytes) override {
    sluice::broadcast_from(comm_, root, bytes, waiting("a broadcast"));
  }
  std::vector<std::string> all_gather(const std::string& own) override {
    return sluice::all_gather(comm_, own, waiting("an all-gather"));
  }

  void expect_heartbeats() override {
    if (!heartbeats_) {
      heartbeats_.emplace(comm_);
    }
  }

  void while_waiting(std::function<void()> work) override { while_waiting_ = std::move(work); }

  void beat() override {
    try {
      if (heartbeats_) {
        heartbeats_->beat();
      }
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void attend(const std::function<void()>& work) override {
    std::packaged_task<void()> task(work);
    std::future<void> end = task.get_future();
    const std::jthread thread = start_thread([&] { task(); });
    while (end.wait_for(kBetweenBeats) != std::future_status::ready) {
      beat();
    }
    end.get();
  }

  [[noreturn]] void fail(const std::exception_ptr& why) override { abort(report(why)); }

  [[noreturn]] void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  int report(const std::exception_ptr& why) const {
    try {
      std::rethrow_exception(why);
    } catch (const std::exception& error) {
      return fail_(rank(), error);
    } catch (...) {
      return fail_(rank(), std::runtime_error("an exception that is no std::exception"));
    }
  }

  void wait_until(const std::function<bool()>& done, const std::function<void()>& overdue) {
    const auto beating = [&] {
      beat();
      if (while_waiting_) {
        while_waiting_();
      }
      return done();
    };
    poll_until(beating, overdue, while_waiting_ ? std::chrono::microseconds(0) : kNap);
  }

  // Finalising blocks until all processes do it. With heartbeats they are all about to, so that one
  // that does not come has died.
  void finalise() {
    const Overdue watch([this, warned = false]() mutable {
      if (heartbeats_ && warned) {
        std::_Exit(fail_(rank(), std::runtime_error("MPI_Finalize does not return: another process "
                                                    "has died, or the network to it is cut")));
      }
      warn_(fmt::format("{} still waits in MPI_Finalize for the other processes",
                        rank_on_host(rank())));
      warned = true;
    });
    MPI_Finalize();
  }

  Waiting waiting(const char* what) {
    return [this, what](const std::function<bool()>& done) {
      wait_until(done, [&] {
        warn_(fmt::format("{} still waits for others in {}", rank_on_host(rank()), what));
      });
    };
  }

  // A text is sent as its length and then in blocks, since MPI counts in 32 bits. Returns when all
  // have begun to receive the last block.
  void send(const std::vector<int>& to, const std::string& text, const std::string& what) {
    const std::uint64_t length = text.size();
    std::vector<std::vector<MPI_Request>> requests(to.size());
    for (std::size_t i = 0; i < to.size(); ++i) {
      MPI_Issend(&length, 1, MPI_UINT64_T, to[i], kTextTag, comm_,
                 &requests[i].emplace_back(MPI_REQUEST_NULL));
      for (std::size_t at = 0; at < text.size(); at += block_bytes_) {
        MPI_Issend(text.data() + at, length_of_block(length, at), MPI_CHAR, to[i], kTextTag, comm_,
                   &requests[i].emplace_back(MPI_REQUEST_NULL));
      }
    }
    const auto done = [&] {
      return std::ranges::all_of(requests, [](auto& of) { return all_complete(of); });
    };
    wait_until(done, [&] {
      std::vector<int> silent;
      for (std::size_t i = 0; i < to.size(); ++i) {
        if (!all_complete(requests[i])) {
          silent.push_back(to[i]);
        }
      }
      warn_(fmt::format("{}: {} is not taken by rank {}", rank_on_host(rank()), what,
                        fmt::join(silent, ", ")));
    });
  }

  // The first text from one of these ranks, and its source.
  std::pair<std::size_t, std::string> receive(const std::vector<std::size_t>& from,
                                              const std::function<void()>& overdue) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status{};
    const auto here = [&] {
      return std::ranges::any_of(from, [&](std::size_t rank) {
        int flag = 0;
        MPI_Improbe(static_cast<int>(rank), kTextTag, comm_, &flag, &message, &status);
        return flag != 0;
      });
    };
    wait_until(here, overdue);
    const auto source = static_cast<std::size_t>(status.MPI_SOURCE);
    std::uint64_t length = 0;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes != sizeof length) {
      throw BadMessage(source, fmt::format("{} bytes where the length of a text belongs", bytes));
    }
    MPI_Mrecv(&length, 1, MPI_UINT64_T, &message, MPI_STATUS_IGNORE);
    return {source, receive_blocks(status.MPI_SOURCE, length, overdue)};
  }

  std::string receive_blocks(int source, std::uint64_t length,
                             const std::function<void()>& overdue) {
    constexpr std::uint64_t kMaxText = std::uint64_t{1} << 42U;
    if (length > kMaxText) {
      throw BadMessage(static_cast<std::size_t>(source), fmt::format("a text of {} bytes", length));
    }
    std::string text(static_cast<std::size_t>(length), '\0');
    std::vector<MPI_Request> requests;
    for (std::size_t at = 0; at < text.size(); at += block_bytes_) {
      MPI_Irecv(text.data() + at, length_of_block(length, at), MPI_CHAR, source, kTextTag, comm_,
                &requests.emplace_back(MPI_REQUEST_NULL));
    }
    wait_until([&] { return all_complete(requests); }, overdue);
    return text;
  }

  int length_of_block(std::uint64_t length, std::size_t at) const {
    return static_cast<int>(std::min<std::uint64_t>(block_bytes_, length - at));
  }

  static bool all_complete(std::vector<MPI_Request>& requests) {
    int all = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE);
    return all != 0;
  }

  const Warn warn_;
  const Fail fail_;
  const bool shared_;  // the program uses MPI too
  const bool finalises_;
  const std::size_t block_bytes_;
  // A copy only if it is shared: making a copy blocks without a message if two ranks do not reach
  // each other.
  MPI_Comm comm_ = MPI_COMM_WORLD;
  int rank_ = 0;
  int size_ = 1;
  std::optional<MpiHeartbeats> heartbeats_;
  std::function<void()> while_waiting_;
};

}  // namespace

Result<std::unique_ptr<ProcessWorld>> join_mpi(Warn warn, Fail fail, MpiLife life,
                                               std::size_t block_bytes) {
  const auto launch = find_launch();
  const auto tune = [&] {
    if (launch) {
      tune_long_messages(*launch);
    }
  };
  const auto start = [&] {
    const Overdue watch([&] {
      warn(
          fmt::format("{} still waits in MPI_Init: a process of the job has not started, or cannot "
                      "reach the launcher",
                      launch ? rank_on_host(launch->rank) : "a process on " + host_name()));
    });
    return start_mpi(life, tune);
  }();
  if (!start) {
    return start.error();
  }
  auto world =
      std::make_unique<JoinedWorld>(std::move(warn), std::move(fail), *start, life, block_bytes);
  if (launch && launch->size.value_or(world->size()) != world->size()) {
    return Error(strangers(*launch, world->size(), mpi_info().library));
  }
  return std::unique_ptr<ProcessWorld>(std::move(world));
}

MpiInfo mpi_info() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string version(text.data(), static_cast<std::size_t>(length));
  return {.library = library_name(version), .advice = ""};
}

}  // namespace sluice
