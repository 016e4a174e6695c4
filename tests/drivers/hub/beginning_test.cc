#include "drivers/hub/beginning.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice {
namespace {

RC_GTEST_PROP(BeginningProperty, TextsAreToldAgainByNameInTheirOrder, ()) {
  const auto name = rc::gen::element<std::string>("a name", "another", "");
  std::map<std::string, std::vector<std::string>> told;
  Beginning here;
  for (int i = *rc::gen::inRange(0, 12); i > 0; --i) {
    const std::string what = *name;
    told[what].push_back(*rc::gen::arbitrary<std::string>());
    here.note(what, told[what].back());
  }
  Beginning there(here.text());
  for (const auto& [what, texts] : told) {
    for (const std::string& text : texts) {
      RC_ASSERT(there.take(what) == text);
    }
    RC_ASSERT_THROWS_AS(there.take(what), std::runtime_error);
  }
}

}  // namespace
}  // namespace sluice
