#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/job.h"

// A short training in a shuffled world that meets one fault.
namespace sluice::faults {

enum class Fault : std::uint8_t {
  kKill,
  kKillUnheard,  // and the other host is the last to hear of it
  kStop,
  kCut,
  kDelay,  // of control messages
};
inline constexpr std::size_t kFaults = 5;

struct Schedule {
  std::uint64_t seed = 0;
  std::string preset;
  Job job;
  Fault fault = Fault::kKill;
  HostId victim;
  HostId other;              // at the other end of a link that is cut, or the last to hear
  Iteration iteration = 0;   // that a worker has reached when it happens
  std::uint64_t events = 0;  // after that, unless the worker ends before
};

// Whether the victim is lost.
bool is_kill(Fault fault);

// What this seed stands for. Presets take turns.
Schedule draw(std::uint64_t seed);
std::string describe(const Schedule& schedule);

// How a run has ended; which of them is right, run() knows.
enum class Outcome : std::uint8_t {
  kWentOn,
  kEnded,
  kCameBack,  // who was lost, after the others had gone on
};

// Throws std::exception if a promise is broken.
Outcome run(const Schedule& schedule);

}  // namespace sluice::faults
