// What is installed serves a program outside: the example is configured, built and run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/command.h"
#include "support/mpirun.h"
#include "support/skip.h"

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(CliInstallTest, TheProgramFindsWhatIsInstalledWithIt) {
  const TemporaryFolder folder;
  const Outcome installed = run_command(
      SLUICE_CMAKE " --install '" SLUICE_BUILD_DIR "' --prefix prefix --component program", folder);
  ASSERT_EQ(installed.code, 0) << installed.err;
  for (const char* file :
       {"share/doc/sluice/LICENSE", "share/man/man1/sluice.1",
        "share/zsh/vendor-completions/_sluice", "share/bash-completion/completions/sluice",
        "share/fish/vendor_completions.d/sluice.fish", "share/sluice/profiles/README.md"}) {
    EXPECT_NE(folder.read(std::string("prefix/") + file), "") << file;
  }
  folder.write("two.toml", "hosts = 2\nbandwidth_gbps = 10\n");
  const Outcome simulated = run_command(
      "prefix/bin/sluice simulate --profile k80/resnet50 --cluster two.toml --iterations 2",
      folder);
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  const Outcome study = run_command("prefix/bin/sluice study p3-scaling --recorded", folder);
  EXPECT_EQ(study.code, 0) << study.err;
  const Outcome models = run_command("prefix/bin/sluice models", folder);
  EXPECT_EQ(models.code, SLUICE_HAS_MODELS ? 0 : 1) << models.err;
}

// A checkout whose path reads like one of the folders inside it.
TEST(ConfigureTest, GoesByTheOptionsWhereverTheCheckoutIs) {
  if (std::string(SLUICE_SANITIZERS) != "") {
    SKIP_AS_INAPPLICABLE("nothing is built that a sanitizer could watch");
  }
  const TemporaryFolder folder;
  ASSERT_EQ(run_command("mkdir -p src/cli/tests/api && cd '" SLUICE_SOURCE_DIR
                        "' && cp -r CMakeLists.txt LICENSE cmake src include profiles "
                        "\"$OLDPWD/src/cli/tests/api\"",
                        folder)
                .code,
            0);
  const auto configure = [&](const std::string& more) {
    return run_command(SLUICE_CMAKE
                           " -G Ninja -S src/cli/tests/api -B out -DCMAKE_CXX_COMPILER='" SLUICE_CXX
                           "' -DCMAKE_CXX_COMPILER_LAUNCHER=/usr/bin/env -DBUILD_TESTING=OFF "
                           "-DSLUICE_BENCH=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON " +
                           more,
                       folder);
  };
  const Outcome required = configure("-DSLUICE_TORCH=ON");
  EXPECT_NE(required.code, 0) << "what cannot be had is asked for";
  EXPECT_THAT(required.err, HasSubstr("Torch"));
  const Outcome automatic = configure("-DSLUICE_TORCH=AUTO");
  ASSERT_EQ(automatic.code, 0) << automatic.err;
  const std::string commands = folder.read("out/compile_commands.json");
  for (const char* source :
       {"src/base/file.cc", "src/cli/main.cc", "src/drivers/virtual/simulator.cc"}) {
    EXPECT_THAT(commands, HasSubstr(std::string("src/cli/tests/api/") + source));
  }
  // Newer versions of CMake write it to the second file.
  EXPECT_THAT(folder.read("out/CMakeFiles/rules.ninja") + folder.read("out/build.ninja"),
              HasSubstr("/usr/bin/env "))
      << "the user's launcher is kept";
}

TEST(InstallTest, AProgramWithItsOwnLoopFindsSluice) {
  if (!SLUICE_HAS_MODELS) {
    SKIP_AS_INAPPLICABLE("built without LibTorch");
  }
  if (std::string(SLUICE_SANITIZERS) != "") {
    SKIP_AS_INAPPLICABLE(
        "the example is built without sanitizers, and these libraries need theirs");
  }
  const TemporaryFolder folder;
  const std::string cmake = SLUICE_CMAKE;
  const Outcome installed =
      run_command(cmake + " --install '" SLUICE_BUILD_DIR "' --prefix prefix", folder);
  ASSERT_EQ(installed.code, 0) << installed.err;
  EXPECT_THAT(run_command("prefix/bin/sluice --version", folder).out, HasSubstr("sluice "));

  const Outcome configured =
      run_command("CMAKE_PREFIX_PATH=\"$PWD/prefix:" SLUICE_PREFIX_PATH "\" " + cmake +
                      " -G Ninja -S '" SLUICE_SOURCE_DIR
                      "/examples/own_loop' -B out -DCMAKE_BUILD_TYPE=Debug "
                      "-DCMAKE_CXX_FLAGS_DEBUG=-O0 " SLUICE_CMAKE_SETTINGS,
                  folder);
  ASSERT_EQ(configured.code, 0) << configured.err;
  const Outcome built = run_command(cmake + " --build out", folder);
  ASSERT_EQ(built.code, 0) << built.out << built.err;

  const std::string right = " workers: (8[0-9]|9[0-9]|100) % right";
  const Outcome alone = run_command("out/own_loop", folder);
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.out, testing::ContainsRegex("1" + right));
  if (why_no_mpi().empty()) {
    const Outcome processes = mpirun(2, "out/own_loop", folder);
    EXPECT_EQ(processes.code, 0) << processes.err;
    EXPECT_THAT(processes.out, testing::ContainsRegex("2" + right));
  }
}

// scripts/package --check installs them on a clean system.
TEST(PackagesTest, HoldTheProgramAndThePythonPackageAndNameWhatTheyNeed) {
  if (!SLUICE_HAS_MODELS || std::string(SLUICE_PYTHON_PROGRAM).empty() ||
      std::string(SLUICE_SANITIZERS) != "") {
    SKIP_AS_INAPPLICABLE("packages have LibTorch and Python, and no sanitizers");
  }
  const TemporaryFolder folder;
  if (run_command("command -v dpkg-deb dpkg-shlibdeps", folder).code != 0) {
    SKIP_FOR_LACK("dpkg-deb and dpkg-shlibdeps are missing; install Debian's dpkg-dev");
  }
  const Outcome packed =
      run_command(SLUICE_CPACK " --config '" SLUICE_BUILD_DIR
                               "/CPackConfig.cmake' -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B out",
                  folder);
  ASSERT_EQ(packed.code, 0) << packed.out << packed.err;
  const auto needs = [&](const std::string& package) {
    return run_command("dpkg-deb --field out/" + package + "_*.deb Depends", folder).out;
  };
  EXPECT_THAT(needs("sluice"), HasSubstr("libtorch"));
  EXPECT_THAT(needs("python3-sluice"), HasSubstr("python3-torch"));
  EXPECT_THAT(needs("libsluice-dev"), HasSubstr("libtorch-dev"));
  ASSERT_EQ(run_command("for p in out/*.deb; do dpkg-deb --extract $p root; done", folder).code, 0);
  const Outcome models = run_command("root/usr/bin/sluice models", folder);
  EXPECT_EQ(models.code, 0) << "the program finds its module for LibTorch: " << models.err;
  const Outcome imported = run_command(
      "PYTHONPATH=$PWD/root/usr/lib/python3/dist-packages '" SLUICE_PYTHON_PROGRAM
      "' -c 'import sluice.torch as sluice; sluice.init(); print(sluice.size(), sluice.__file__)'",
      folder);
  EXPECT_EQ(imported.code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("1 " + (folder.path() / "root").string()));
}

}  // namespace
}  // namespace sluice
