// Searches for schedules that break a promise when a host is lost or stands still.
//
//   sluice_faults [--schedules N] [--seed S] [--threads T]
//
// Each seed from S on is a schedule. What fails is reported with the command that repeats it.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "faults/schedule.h"

namespace {

using namespace sluice::faults;

struct Options {
  std::uint64_t schedules = 10'000;
  std::uint64_t seed = 1;
  std::uint64_t threads = std::max(1U, std::thread::hardware_concurrency());
};

int refuse(const std::string& why) {
  fmt::print(stderr, "sluice_faults: {}\n", why);
  return 2;
}

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Shared by the threads of a search.
struct Search {
  std::atomic<std::uint64_t> next;
  std::uint64_t end;
  std::atomic<std::uint64_t> ended = 0;
  std::atomic<std::uint64_t> came_back = 0;
  std::atomic<bool> has_failed = false;
  std::mutex printing;

  void run() {
    while (!has_failed) {
      const std::uint64_t seed = next++;
      if (seed >= end) {
        return;
      }
      const Schedule schedule = draw(seed);
      try {
        const Outcome outcome = sluice::faults::run(schedule);
        ended += outcome == Outcome::kEnded ? 1 : 0;
        came_back += outcome == Outcome::kCameBack ? 1 : 0;
      } catch (const std::exception& e) {
        has_failed = true;
        const std::lock_guard lock(printing);
        fmt::print(stderr,
                   "{}\nbroken: {}\nrepeat it with: sluice_faults --schedules 1 --seed {}\n",
                   describe(schedule), e.what(), seed);
      }
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  Options options;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    std::uint64_t* const number = name == "--schedules" ? &options.schedules
                                  : name == "--seed"    ? &options.seed
                                  : name == "--threads" ? &options.threads
                                                        : nullptr;
    if (number == nullptr) {
      return refuse(fmt::format("no option {}; choose from: --schedules, --seed, --threads", name));
    }
    if (i + 1 == arguments.size() || !read_number(arguments[i + 1], *number)) {
      return refuse(fmt::format("{} needs a number", name));
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  Search search{.next = options.seed, .end = options.seed + options.schedules, .printing = {}};
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 1; t < options.threads; ++t) {
    threads.emplace_back([&] { search.run(); });
  }
  search.run();
  threads.clear();
  if (search.has_failed) {
    return 1;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print(
      "{} schedules, {} of them ended with the error that names the lost rank, and in {} it came "
      "back; {:.0f} per second\n",
      options.schedules, search.ended.load(), search.came_back.load(),
      static_cast<double>(options.schedules) / seconds.count());
  return 0;
}
