#include "formats/link_cost.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>

namespace sluice {
namespace {

RC_GTEST_PROP(LinkCostProperty, ItsTextIsExact, ()) {
  const auto number = rc::gen::map(rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000),
                                   [](std::int64_t n) { return static_cast<double>(n) / 7e9; });
  const LinkCost link{Duration(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)), *number,
                      *number, Duration(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000)),
                      *number};
  RC_ASSERT(link_cost_from(Json::parse(json_of(link).dump())) == link);
}

}  // namespace
}  // namespace sluice
