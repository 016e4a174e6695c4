#include "drivers/mpi/launch.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

namespace sluice {
namespace {

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
  EXPECT_EQ(processes_per_machine({"a"}), 1U);
  EXPECT_EQ(processes_per_machine({"a", "a", "a"}), 3U);
  EXPECT_EQ(processes_per_machine({"a", "a", "b", "b"}), 2U);
  EXPECT_EQ(processes_per_machine({"a", "a", "b"}), 1U) << "not as many on each";
  EXPECT_EQ(processes_per_machine({"a", "b", "a", "b"}), 1U) << "in another order";
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
  EXPECT_LT(fragment_bytes(1), fragment_bytes(std::nullopt));
  EXPECT_LT(fragment_bytes(std::nullopt), fragment_bytes(25));
}

TEST(LaunchTest, TellsTheScriptOfAnAllocationFromItsTasks) {
  EXPECT_FALSE(launch_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));
  EXPECT_FALSE(launch_in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
  // Started by srun without a plugin for MPI: joining will find that the processes are strangers.
  EXPECT_TRUE(launch_in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}));
}

}  // namespace
}  // namespace sluice
