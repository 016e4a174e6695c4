#include "formats/survey.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <cmath>

namespace sluice {
namespace {

// What is wrong with the interface; empty if nothing is.
std::string fault_of(const Interface& interface) {
  in_addr parsed{};
  if (inet_pton(AF_INET, interface.address.c_str(), &parsed) != 1) {
    return fmt::format("{} is not an IPv4 address", Json(interface.address).dump());
  }
  if (interface.prefix < 0 || interface.prefix > 32) {
    return fmt::format("prefix {} of {}, expected 0 ... 32", interface.prefix, interface.address);
  }
  if (interface.gbps && !(*interface.gbps > 0 && std::isfinite(*interface.gbps))) {
    return fmt::format("{} Gb/s of {}", *interface.gbps, interface.address);
  }
  return "";
}

}  // namespace

std::string Interface::network() const {
  in_addr parsed{};
  inet_pton(AF_INET, address.c_str(), &parsed);
  const std::uint32_t mask =
      prefix == 0 ? 0 : ~std::uint32_t{0} << static_cast<unsigned>(32 - prefix);
  parsed.s_addr = htonl(ntohl(parsed.s_addr) & mask);
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &parsed, text.data(), text.size());
  return fmt::format("{}/{}", text.data(), prefix);
}

Json to_json(const RankInfo& info) {
  Json interfaces = Json::array();
  for (const Interface& interface : info.interfaces) {
    interfaces.push_back({{"name", interface.name},
                          {"address", interface.address},
                          {"prefix", interface.prefix},
                          {"gbps", interface.gbps ? Json(*interface.gbps) : Json()}});
  }
  return {{"host", info.host}, {"interfaces", interfaces}};
}

Result<RankInfo> rank_info_of(const Json& json) {
  try {
    RankInfo info{json.at("host"), {}, json.value("boot_id", "")};
    for (const Json& interface : json.at("interfaces")) {
      const Json& gbps = interface.at("gbps");
      info.interfaces.push_back({interface.at("name"), interface.at("address"),
                                 interface.at("prefix"),
                                 gbps.is_null() ? std::nullopt : std::optional<double>(gbps)});
      if (const std::string fault = fault_of(info.interfaces.back()); !fault.empty()) {
        return Error(fault);
      }
    }
    return info;
  } catch (const Json::exception& e) {
    return Error(e.what());
  }
}

std::string Survey::name(std::size_t rank) const {
  return ranks[rank] ? fmt::format("rank {} on {}", rank, ranks[rank]->host)
                     : fmt::format("rank {}", rank);
}

bool Survey::same_machine(std::size_t a, std::size_t b) const {
  return a == b || (ranks[a] && ranks[b] && ranks[a]->same_machine(*ranks[b]));
}

}  // namespace sluice
