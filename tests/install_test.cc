// What is installed serves a program outside: the example is configured, built and run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/command.h"
#include "support/mpirun.h"

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(InstallTest, AProgramWithItsOwnLoopFindsSluice) {
  if (!SLUICE_HAS_MODELS) {
    GTEST_SKIP() << "built without LibTorch";
  }
  if (std::string(SLUICE_SANITIZERS) != "") {
    GTEST_SKIP() << "the example is built without sanitizers, and these libraries need theirs";
  }
  const TemporaryFolder folder;
  const std::string cmake = SLUICE_CMAKE;
  const Outcome installed =
      run_command(cmake + " --install '" SLUICE_BUILD_DIR "' --prefix prefix", folder);
  ASSERT_EQ(installed.code, 0) << installed.err;
  EXPECT_THAT(run_command("prefix/bin/sluice --version", folder).out, HasSubstr("sluice "));

  const Outcome configured = run_command(
      cmake + " -G Ninja -S '" SLUICE_SOURCE_DIR "/examples/own_loop' -B out " SLUICE_CMAKE_SETTINGS
              " -DCMAKE_PREFIX_PATH=\"$PWD/prefix;" SLUICE_PREFIX_PATH "\"",
      folder);
  ASSERT_EQ(configured.code, 0) << configured.err;
  const Outcome built = run_command(cmake + " --build out", folder);
  ASSERT_EQ(built.code, 0) << built.out << built.err;

  const std::string right = "2 workers: (2[4-9]|3[0-2]) of 32 right";
  const Outcome threads = run_command("out/own_loop", folder);
  EXPECT_EQ(threads.code, 0) << threads.err;
  EXPECT_THAT(threads.out, testing::ContainsRegex(right));
  if (why_no_mpi().empty()) {
    const Outcome processes = mpirun(2, "out/own_loop", folder);
    EXPECT_EQ(processes.code, 0) << processes.err;
    EXPECT_THAT(processes.out, testing::ContainsRegex(right));
  }
}

}  // namespace
}  // namespace sluice
