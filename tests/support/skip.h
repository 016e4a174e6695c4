#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace sluice {

// With CI=true in the environment, the machine must have everything that the tests need.
inline bool has_everything() {
  const char* ci = std::getenv("CI");
  return ci != nullptr && std::string_view(ci) == "true";
}

}  // namespace sluice

// Ends a test if the machine lacks something: MPI, root, Python, data. Skips the test, or fails it
// if has_everything().
#define SKIP_FOR_LACK(why)                                                            \
  if (::sluice::has_everything()) {                                                   \
    FAIL() << (why) << "; with CI=true in the environment tests must not be skipped"; \
  } else                                                                              \
    GTEST_SKIP() << (why)

// Ends a test that does not apply: a GPU test without a GPU, a test of models in a build without
// LibTorch.
#define SKIP_AS_INAPPLICABLE(why) GTEST_SKIP() << (why)
