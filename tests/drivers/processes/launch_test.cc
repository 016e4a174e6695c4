#include "drivers/processes/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <tuple>

#include "drivers/realtime/processor.h"

namespace sluice {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

// What Slurm sets for every task of a step, on Debian 12 and 13.
std::map<std::string, std::string> step_with(const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> variables{
      {"SLURM_PROCID", "5"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}};
  variables.insert(more.begin(), more.end());
  return variables;
}

const std::map<std::string, std::string> kPmi2{{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}};
const std::map<std::string, std::string> kPmix{{"PMIX_RANK", "5"},
                                               {"SLURM_PMIX_MAPPING_SERV", "(vector,(0,2,4))"}};
const std::map<std::string, std::string> kHydra{
    {"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALNRANKS", "4"}};
const std::map<std::string, std::string> kOpenMpi{
    {"PMIX_RANK", "5"}, {"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}};

TEST(LaunchTest, KnowsTheLaunchers) {
  for (const auto& [variables, by, pmi] :
       {std::tuple{kOpenMpi, "Open MPI's mpirun", Pmi::kPmix},
        {kHydra, "MPICH's mpiexec (Hydra)", Pmi::kPmi2},
        {kPmi2, "a launcher with PMI", Pmi::kPmi2},
        {step_with(kPmi2), "Slurm's srun --mpi=pmi2", Pmi::kPmi2},
        {step_with(kPmix), "Slurm's srun --mpi=pmix", Pmi::kPmix},
        {step_with({}), "Slurm's srun without PMI (--mpi=none)", Pmi::kNone},
        // Slurm starts the daemons of another launcher, which pass on its variables.
        {step_with(kOpenMpi), "Open MPI's mpirun", Pmi::kPmix},
        {step_with(kHydra), "MPICH's mpiexec (Hydra)", Pmi::kPmi2}}) {
    SCOPED_TRACE(by);
    const auto launch = launch_in(variables);
    ASSERT_TRUE(launch);
    EXPECT_EQ(launch->by, by);
    EXPECT_EQ(launch->pmi, pmi);
    EXPECT_EQ(launch->rank, 5U);
    EXPECT_EQ(launch->size, 8U);
  }
}

TEST(LaunchTest, ALauncherWithinAStepMayStartAnyNumber) {
  const auto launch = launch_in(step_with({{"PMIX_RANK", "5"}}));
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->by, "a launcher with PMIx");
  EXPECT_FALSE(launch->size);
}

TEST(LaunchTest, ALibraryIsNamedInOneLine) {
  EXPECT_EQ(library_name("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"),
            "Open MPI v4.1.4");
  EXPECT_EQ(library_name("MPICH Version:\t4.0.2\nMPICH Release date:\tThu"), "MPICH 4.0.2");
  EXPECT_EQ(library_name("MPICH Version:      4.2.1\n"), "MPICH 4.2.1");
}

TEST(LaunchTest, ALauncherMustFitTheLibrary) {
  const std::string open_mpi = "Open MPI v4.1.4";
  const std::string mpich = "MPICH 4.0.2";
  for (const auto& [variables, library, advice] :
       {std::tuple{kOpenMpi, open_mpi, ""},
        {kOpenMpi, mpich, "the mpiexec of the same MPI, or srun --mpi=pmi2"},
        {kHydra, mpich, ""},
        {kHydra, std::string("Intel(R) MPI Library 2021.10"), ""},
        {kHydra, open_mpi, "the mpirun of the same Open MPI, or srun --mpi=pmix"},
        {step_with(kPmix), open_mpi, ""},
        {step_with(kPmix), mpich, "the mpiexec of the same MPI, or srun --mpi=pmi2"},
        {step_with(kPmi2), mpich, ""},
        {step_with(kPmi2), open_mpi, "the mpirun of the same Open MPI, or srun --mpi=pmix"},
        {step_with({}), open_mpi, "the mpirun of the same Open MPI, or srun --mpi=pmix"},
        {step_with({}), mpich, "the mpiexec of the same MPI, or srun --mpi=pmi2"},
        {step_with({}), std::string("Some MPI"), ""},
        {kHydra, std::string(), ""}}) {
    const auto launch = launch_in(variables);
    ASSERT_TRUE(launch);
    SCOPED_TRACE(library + " under " + launch->by);
    const auto why = misfit(launch->pmi, library);
    ASSERT_EQ(why.has_value(), *advice != '\0');
    if (why) {
      EXPECT_THAT(*why, EndsWith(std::string("; start with ") + advice));
      EXPECT_THAT(*why, HasSubstr(library));
    }
  }
  EXPECT_THAT(*misfit(Pmi::kPmi2, open_mpi),
              StartsWith("it offers PMI-2, but Open MPI v4.1.4, which sluice was built with, "
                         "understands PMIx: "));
  EXPECT_THAT(*misfit(Pmi::kNone, mpich), StartsWith("it offers no PMI, but "));
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
  const auto pmix = launch_in(step_with(kPmix));
  ASSERT_TRUE(pmix);
  const std::string mpich = strangers(*pmix, 1, "MPICH 4.0.2");
  EXPECT_THAT(mpich, HasSubstr("8 processes were started by Slurm's srun --mpi=pmix (according to "
                               "SLURM_STEP_NUM_TASKS), but MPI knows of 1: MPICH"));
  EXPECT_THAT(mpich, EndsWith("start with the mpiexec of the same MPI, or srun --mpi=pmi2"));
  const auto pmi2 = launch_in(kPmi2);
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
  EXPECT_FALSE(has_idle_cores(std::thread::hardware_concurrency()));
  EXPECT_EQ(has_idle_cores(1), usable_cores() >= 4);
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
