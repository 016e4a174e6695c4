#include "drivers/mpi/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::optional<Launch> launch_in(const std::map<std::string, std::string>& variables) {
  return find_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(LaunchTest, AloneThereIsNone) {
  EXPECT_FALSE(launch_in({}));
  EXPECT_FALSE(launch_in({{"OMPI_COMM_WORLD_SIZE", "4"}}));
  EXPECT_FALSE(launch_in({{"PMI_RANK", "some"}}));
}

TEST(LaunchTest, KnowsTheLaunchers) {
  const auto open_mpi = launch_in({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  ASSERT_TRUE(open_mpi);
  EXPECT_EQ(open_mpi->rank, 3U);
  EXPECT_EQ(open_mpi->size, 4U);
  EXPECT_FALSE(open_mpi->size_here);
  const auto mpich = launch_in({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  ASSERT_TRUE(mpich);
  EXPECT_EQ(mpich->size, 2U);
  const auto srun =
      launch_in({{"PMIX_RANK", "5"}, {"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}});
  ASSERT_TRUE(srun);
  EXPECT_EQ(srun->rank, 5U);
  EXPECT_EQ(srun->size, 8U);
}

TEST(LaunchTest, CountsTheProcessesOfAMachine) {
  EXPECT_EQ(processes_per_machine({0}), 1U);
  EXPECT_EQ(processes_per_machine({0, 0, 0}), 3U);
  EXPECT_EQ(processes_per_machine({0, 0, 2, 2}), 2U);
  EXPECT_EQ(processes_per_machine({0, 0, 2}), 1U) << "different numbers per machine";
  EXPECT_EQ(processes_per_machine({0, 1, 0, 1}), 1U) << "ranks not consecutive";
}

// The advice must not repeat the flag that was given.
TEST(LaunchTest, AdvisesALauncherThatTheLibraryUnderstands) {
  const auto pmix =
      launch_in({{"PMIX_RANK", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}});
  ASSERT_TRUE(pmix);
  const std::string mpich = strangers(*pmix, 1, "MPICH Version:\t4.0.2");
  EXPECT_THAT(mpich, HasSubstr("8 processes were started (according to SLURM_STEP_NUM_TASKS)"));
  EXPECT_THAT(mpich, HasSubstr("MPI knows of 1"));
  EXPECT_THAT(mpich, HasSubstr("srun --mpi=pmi2"));
  EXPECT_THAT(mpich, HasSubstr("mpiexec"));
  EXPECT_THAT(mpich, Not(HasSubstr("--mpi=pmix")));
  const auto pmi2 = launch_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "8"}});
  ASSERT_TRUE(pmi2);
  const std::string open_mpi = strangers(*pmi2, 1, "Open MPI v4.1.4");
  EXPECT_THAT(open_mpi, HasSubstr("srun --mpi=pmix"));
  EXPECT_THAT(open_mpi, Not(HasSubstr("pmi2")));
  EXPECT_THAT(strangers(*pmi2, 1, "Some MPI"), Not(HasSubstr("srun")));
}

TEST(LaunchTest, CountsTheProcessesOfThisMachine) {
  const auto launch = launch_in({{"OMPI_COMM_WORLD_RANK", "3"},
                                 {"OMPI_COMM_WORLD_SIZE", "8"},
                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->size_here, 2U);
}

TEST(LaunchTest, ManyProcessesLeaveNoCoreIdle) {
  EXPECT_TRUE(has_idle_cores(0));
  EXPECT_FALSE(has_idle_cores(std::thread::hardware_concurrency()));
}

TEST(LaunchTest, FragmentsGrowWithTheRate) {
  EXPECT_EQ(fragment_bytes(1), 64 << 10);
  EXPECT_GT(fragment_bytes(10), fragment_bytes(std::nullopt));
  EXPECT_GT(fragment_bytes(std::nullopt), 256 << 10);
  EXPECT_EQ(fragment_bytes(100), 1 << 20);
}

TEST(LaunchTest, TellsTheScriptOfAnAllocationFromItsTasks) {
  EXPECT_FALSE(launch_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));
  EXPECT_FALSE(launch_in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
  // Started by srun without a plugin for MPI: joining will find a different number of processes.
  EXPECT_TRUE(launch_in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}));
}

}  // namespace
}  // namespace sluice
