#include "formats/survey.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>

namespace sluice {

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

Json to_json(const Member& member) {
  Json interfaces = Json::array();
  for (const Interface& interface : member.interfaces) {
    interfaces.push_back({{"name", interface.name},
                          {"address", interface.address},
                          {"prefix", interface.prefix},
                          {"gbps", interface.gbps ? Json(*interface.gbps) : Json()}});
  }
  return {{"host", member.host}, {"interfaces", interfaces}};
}

Member member_of(const Json& json) {
  Member member{json.at("host"), {}};
  for (const Json& interface : json.at("interfaces")) {
    const Json& gbps = interface.at("gbps");
    member.interfaces.push_back({interface.at("name"), interface.at("address"),
                                 interface.at("prefix"),
                                 gbps.is_null() ? std::nullopt : std::optional<double>(gbps)});
  }
  return member;
}

std::string Survey::name(std::size_t rank) const {
  return members[rank] ? fmt::format("rank {} on {}", rank, members[rank]->host)
                       : fmt::format("rank {}", rank);
}

bool Survey::same_machine(std::size_t a, std::size_t b) const {
  return a == b || (members[a] && members[b] && members[a]->host == members[b]->host);
}

}  // namespace sluice
