#pragma once

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace sluice {

// The files, sockets and others that this process has open.
inline std::vector<int> open_descriptors() {
  std::vector<int> descriptors;
  std::error_code fault;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", fault), end;
       !fault && entry != end; entry.increment(fault)) {
    const std::string name = entry->path().filename().string();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    descriptors.push_back(number);
  }
  return descriptors;
}

}  // namespace sluice
