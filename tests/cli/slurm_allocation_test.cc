#include "cli/slurm_allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace sluice::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<std::optional<Placement>> placed(std::size_t processes,
                                        const std::map<std::string, std::string>& variables) {
  return placement_in_slurm(
      processes,
      [&](const char* name) {
        const auto at = variables.find(name);
        return at == variables.end() ? nullptr : at->second.c_str();
      },
      [](const std::string& expression) -> Result<std::string> {
        return expression == "n[1-3]" ? Result<std::string>("n1\nn2\nn3\n")
                                      : Error(expression + ": invalid");
      });
}

TEST(SlurmAllocation, FillsEachNodeBeforeTheNext) {
  const auto place =
      placed(4, {{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_TASKS_PER_NODE", "1,2(x2)"}});
  ASSERT_TRUE(place) << place.error().message();
  ASSERT_TRUE(place->has_value());
  EXPECT_THAT((*place)->hosts, ElementsAre("n1", "n2", "n2", "n3"));
  EXPECT_EQ((*place)->agent.front(), "srun");
  EXPECT_EQ((*place)->agent.back(), "--nodelist") << "the agent names the host last";
  EXPECT_THAT((*place)->shell, ElementsAre("sh", "-c"));
}

TEST(SlurmAllocation, IsNoneOutsideOfSlurm) {
  EXPECT_FALSE(placed(4, {})->has_value());
  EXPECT_FALSE(placed(4, {{"SLURM_JOB_NODELIST", "n[1-3]"}})->has_value());
}

TEST(SlurmAllocation, SaysWhatIsWrong) {
  const auto few = placed(4, {{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_TASKS_PER_NODE", "1(x3)"}});
  EXPECT_THAT(few.error().message(), HasSubstr("3 slots for 4 processes"));
  EXPECT_THAT(few.error().message(), HasSubstr("n[1-3]"));
  const auto nodes = placed(1, {{"SLURM_JOB_NODELIST", "n["}, {"SLURM_TASKS_PER_NODE", "1"}});
  EXPECT_THAT(nodes.error().message(), HasSubstr("n[: invalid"));
}

TEST(SlurmAllocation, ReadsHowManyTasksEachNodeTakes) {
  EXPECT_THAT(*tasks_by_node("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(*tasks_by_node("16"), ElementsAre(16));
  EXPECT_THAT(*tasks_by_node(""), IsEmpty());
  for (const char* wrong : {"x", "2(x", "2(x3", "2(3)", "2 1", "1,,2", "1(x99999999999999999999)",
                            "1(x100001)", "1(x60000),1(x60000)"}) {
    const auto tasks = tasks_by_node(wrong);
    ASSERT_FALSE(tasks) << wrong;
    EXPECT_THAT(tasks.error().message(), HasSubstr(wrong));
  }
}

}  // namespace
}  // namespace sluice::cli
