#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace sluice {

// Where CI=true stands in the environment, the machine is meant to have all that the tests need.
inline bool has_everything() {
  const char* ci = std::getenv("CI");
  return ci != nullptr && std::string_view(ci) == "true";
}

}  // namespace sluice

// Ends a test for which the machine lacks something: MPI, root, Python, data. It is skipped, or
// fails where nothing may be lacking.
#define SKIP_FOR_LACK(why)                                                        \
  if (::sluice::has_everything()) {                                               \
    FAIL() << (why) << "; with CI=true in the environment a test is not skipped"; \
  } else                                                                          \
    GTEST_SKIP() << (why)

// Ends a test that says nothing here: about a GPU where there is none, about models in a build
// without LibTorch.
#define SKIP_AS_INAPPLICABLE(why) GTEST_SKIP() << (why)
