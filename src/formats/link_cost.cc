#include "formats/link_cost.h"

#include <nlohmann/json.hpp>

namespace sluice {

Json json_of(const LinkCost& link) {
  return {{"startup_ps", link.startup.count()},
          {"ns_per_byte", link.ns_per_byte},
          {"reduce_ns_per_byte", link.reduce_ns_per_byte},
          {"message_ps", link.message.count()},
          {"code_ns_per_byte", link.code_ns_per_byte}};
}

LinkCost link_cost_from(const Json& json) {
  return {.startup = Duration(json.at("startup_ps").get<std::int64_t>()),
          .ns_per_byte = json.at("ns_per_byte"),
          .reduce_ns_per_byte = json.at("reduce_ns_per_byte"),
          .message = Duration(json.at("message_ps").get<std::int64_t>()),
          .code_ns_per_byte = json.at("code_ns_per_byte")};
}

}  // namespace sluice
