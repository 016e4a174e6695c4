#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "drivers/mpi/mpi_world.h"
#include "support/command.h"
#include "support/skip.h"

namespace sluice {

// Why MPI jobs cannot run here; empty if they can.
inline std::string why_no_mpi() {
  const std::string mpirun = SLUICE_MPIRUN;
  return mpirun.empty() || !std::filesystem::exists(mpirun)
             ? "built without MPI, or its mpirun is gone; scripts/packages installs it"
             : "";
}

// Launchers differ in what they say and how they pass on signals.
inline bool uses_open_mpi() { return mpi_info().library.starts_with("Open MPI"); }

// The rank of a process, in a script that mpirun() runs: Open MPI's and MPICH's variable.
inline constexpr const char* kRankInScript = "${OMPI_COMM_WORLD_RANK-$PMI_RANK}";

// Runs a program as several processes on this machine. The settings are Open MPI's, for versions up
// to 4 and from 5 on: allow root, allow more processes than cores, bind to none; other MPIs ignore
// them. Leak detection is off, since MPI has leaks. A job that hangs is killed.
inline Outcome mpirun(int processes, const std::string& program, const TemporaryFolder& folder) {
  return run_command(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none "
      "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe "
      "PRTE_MCA_hwloc_default_binding_policy=none "
      "OMPI_MCA_btl=self,vader,tcp ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" timeout -k 5 "
      "120 sh '" SLUICE_SOURCE_DIR "/tests/support/launch.sh' " SLUICE_MPIRUN " -np " +
          std::to_string(processes) + " " + program,
      folder);
}

// A test that runs MPI jobs, where they can run.
class MpiJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mpi(); !why.empty()) {
      SKIP_FOR_LACK(why);
    }
  }

  TemporaryFolder folder_;
};

}  // namespace sluice
