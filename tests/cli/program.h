#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/command.h"

namespace sluice {

// Runs the program itself.
inline Outcome sluice(const std::string& arguments, const TemporaryFolder& folder,
                      const std::string& environment = "") {
  return run_command(environment + " '" SLUICE_BINARY "' " + arguments, folder);
}
inline Outcome sluice(const std::string& arguments) { return sluice(arguments, TemporaryFolder()); }

// Bad input: exit code 2, nothing on standard output, and this line on standard error.
inline void expect_refused(const Outcome& outcome, const std::string& complaint) {
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, testing::StartsWith("sluice: " + complaint));
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

}  // namespace sluice
