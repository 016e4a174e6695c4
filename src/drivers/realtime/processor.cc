#include "drivers/realtime/processor.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "drivers/realtime/clock.h"
#include "drivers/realtime/start_thread.h"

namespace sluice {
namespace {

// Those that the system lets this process run on.
std::size_t bound_cores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  const bool known = sched_getaffinity(0, sizeof usable, &usable) == 0;
  const auto all = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  return known ? std::max<std::size_t>(1, static_cast<std::size_t>(CPU_COUNT(&usable))) : all;
}

std::size_t lab_hosts() {
  const char* text = std::getenv(kLabHosts);
  std::size_t hosts = 1;
  if (text != nullptr) {
    std::from_chars(text, text + std::strlen(text), hosts);
  }
  return std::max<std::size_t>(1, hosts);
}

}  // namespace

Duration processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return from_us(us(usage.ru_utime) + us(usage.ru_stime));
}

std::size_t usable_cores() { return std::max<std::size_t>(1, bound_cores() / lab_hosts()); }

std::size_t usable_cores(std::size_t processes) {
  const auto all = std::max<std::size_t>(bound_cores(), std::thread::hardware_concurrency());
  const std::size_t share = all / (lab_hosts() * std::max<std::size_t>(1, processes));
  return std::clamp<std::size_t>(share, 1, usable_cores());
}

double measured_cores(Duration length) {
  const Clock clock;
  const Duration before = processor_time();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < usable_cores(); ++i) {
      threads.push_back(start_thread([&] {
        while (clock.now() < length) {
        }
      }));
    }
  }
  return to_seconds(processor_time() - before) / to_seconds(clock.now());
}

}  // namespace sluice
