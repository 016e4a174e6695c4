#include "drivers/processes/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <fstream>
#include <memory>

namespace sluice {
namespace {

// Virtual devices report rates that mean nothing.
std::optional<double> rate_of(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path("/sys/class/net") / name;
  std::ifstream file(folder / "speed");
  double mbps = 0;
  std::error_code ignored;
  const bool known =
      std::filesystem::exists(folder / "device", ignored) && file >> mbps && mbps > 0;
  return known ? std::optional(mbps / 1000) : std::nullopt;
}

Interface read(const ifaddrs& entry) {
  const auto ipv4 = [](const sockaddr* address) {
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  };
  const in_addr address = ipv4(entry.ifa_addr);
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address, text.data(), text.size());
  const int prefix =
      entry.ifa_netmask == nullptr ? 32 : std::popcount(ipv4(entry.ifa_netmask).s_addr);
  return {entry.ifa_name, text.data(), prefix, rate_of(entry.ifa_name)};
}

}  // namespace

std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    const bool up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0;
    if (up && entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET) {
      found.push_back(read(*entry));
    }
  }
  std::ranges::sort(found, {}, &Interface::name);
  return found;
}

std::optional<double> fastest_interface_gbps() {
  std::optional<double> fastest;
  for (const Interface& interface : interfaces()) {
    fastest = std::max(fastest, interface.gbps);
  }
  return fastest;
}

}  // namespace sluice
