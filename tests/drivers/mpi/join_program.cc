// Joins MPI as programs do that have an MPI of their own or join more than once, for join_test.cc:
//
//   join_program again       joins twice, and leaves finalising to the exit
//   join_program LEVEL       initialises MPI itself: single, funneled or multiple
//   join_program beating     initialises MPI itself, and sends heartbeats as it leaves
//   join_program thread      initialises MPI itself, and joins on another thread
//   join_program finalised   joins after it has finalised MPI
//   join_program fail        rank 1 exits with a failure, and the others wait for it
//
// Rank 0 prints who was there, or every rank prints why it could not join.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mpi.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <thread>

#include "drivers/mpi/mpi_world.h"

namespace sluice::testing {
namespace {

void say(const std::string& text) { std::cerr << text << std::endl; }

int fail(std::size_t rank, const std::exception& why) {
  say(fmt::format("rank {}: {}", rank, why.what()));
  return 1;
}

// Prints the reason and returns false if nobody can join.
bool join_and_meet() {
  const auto world = join_mpi(say, fail, MpiLife::kProcess);
  if (!world) {
    say(world.error().message());
    return false;
  }
  (*world)->meet();
  const auto names = (*world)->gather(fmt::format("rank {}", (*world)->rank()), "its name");
  if (!names.empty()) {
    std::cout << fmt::format("{}\n", fmt::join(names, ", "));
  }
  return true;
}

// Messages of Sluice must not reach the program's own receives.
bool join_beside_program(int level) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, level, &provided);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int received = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  const bool joined = program_runs_mpi() && join_and_meet() && join_and_meet();
  MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const bool undisturbed = received == (rank + size - 1) % size;
  MPI_Finalize();
  return joined && undisturbed && !program_runs_mpi();
}

// Only rank 0 has left when the others send theirs. If a message were left, one of the next time
// with its number would be lost.
bool join_and_beat() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  for (int time = 0; time < 8; ++time) {
    const auto world = join_mpi(say, fail, MpiLife::kProcess);
    for (int words = 0; words <= 2 * (time % 2); ++words) {
      (*world)->gather("here", "a word");
    }
    (*world)->expect_heartbeats();
    if ((*world)->rank() > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      (*world)->beat();
      (*world)->beat();
    }
  }
  const bool joined = join_and_meet();
  MPI_Finalize();
  return joined;
}

bool join_on_thread() {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  bool joined = false;
  std::jthread([&] { joined = join_and_meet(); }).join();
  MPI_Finalize();
  return joined;
}

bool join_after_end() {
  MPI_Init(nullptr, nullptr);
  MPI_Finalize();
  return join_and_meet();
}

bool leave_with_failure() {
  const auto world = join_mpi(say, fail, MpiLife::kProcess);
  if ((*world)->rank() == 1) {
    return false;
  }
  (*world)->gather("here", "a word");
  return true;
}

bool run(const std::string& mode) {
  const std::map<std::string, int> levels{{"single", MPI_THREAD_SINGLE},
                                          {"funneled", MPI_THREAD_FUNNELED},
                                          {"multiple", MPI_THREAD_MULTIPLE}};
  if (const auto level = levels.find(mode); level != levels.end()) {
    return join_beside_program(level->second);
  }
  if (mode == "beating") {
    return join_and_beat();
  }
  if (mode == "thread") {
    return join_on_thread();
  }
  if (mode == "finalised") {
    return join_after_end();
  }
  if (mode == "fail") {
    return leave_with_failure();
  }
  return join_and_meet() && join_and_meet();
}

}  // namespace
}  // namespace sluice::testing

int main(int /*argc*/, char** argv) { return sluice::testing::run(argv[1]) ? 0 : 1; }
