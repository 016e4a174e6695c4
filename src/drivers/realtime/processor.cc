#include "drivers/realtime/processor.h"

#include <sys/resource.h>

#include <thread>
#include <vector>

#include "drivers/realtime/clock.h"
#include "drivers/realtime/start_thread.h"

namespace sluice {

Duration processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return from_us(us(usage.ru_utime) + us(usage.ru_stime));
}

double measured_cores(Duration length) {
  const Clock clock;
  const Duration before = processor_time();
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
      threads.push_back(start_thread([&] {
        while (clock.now() < length) {
        }
      }));
    }
  }
  return to_seconds(processor_time() - before) / to_seconds(clock.now());
}

}  // namespace sluice
