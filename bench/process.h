#pragma once

#include <chrono>
#include <fstream>
#include <string>

// What benchmarks measure of their own process.
namespace sluice {

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The most memory that the process had in use, as Linux keeps it.
inline double peak_memory_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") {
      double kb = 0;
      status >> kb;
      return kb / 1000;
    }
  }
  return 0;
}

}  // namespace sluice
