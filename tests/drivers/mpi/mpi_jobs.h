#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/hash.h"
#include "support/lines.h"
#include "support/mpirun.h"
#include "support/short_training.h"
#include "support/skip.h"
#include "support/threaded.h"
#include "support/toy_job.h"

// What the tests that run MPI jobs on this machine have in common.
namespace sluice {

inline constexpr int kProcesses = 4;
inline constexpr Iteration kIterations = 30;

class MpiTest : public MpiJobTest {
 protected:
  Outcome toys(const std::string& arguments) const {
    return mpirun(kProcesses, "'" SLUICE_MPI_TOY "' " + arguments, folder_);
  }
  Outcome sluice(const std::string& arguments) const {
    return mpirun(kProcesses, "'" SLUICE_BINARY "' " + arguments, folder_);
  }
};

// The hash of every worker's parameters after the same run on threads.
inline std::vector<std::string> hashes_on_threads(
    const std::vector<std::unique_ptr<Learner>>& learners, const Strategy& strategy,
    std::size_t servers = 0) {
  const Job job = testing::job_for(learners, Topology(learners.size(), 1, servers), strategy);
  TrainingState state = testing::state_for(learners, assemble(job), testing::kToyRule);
  for (const auto& [part, last] : testing::toy_phases(job, kIterations)) {
    testing::run_phase(assemble(part), state, last);
  }
  std::vector<std::string> hashes;
  for (const auto& learner : learners) {
    hashes.push_back(fmt::format("{:016x}", hash_of(std::as_bytes(learner->parameters()))));
  }
  return hashes;
}

// Its result does not depend on timing.
inline bool is_deterministic(const Strategy& strategy) {
  return strategy.algorithm == Algorithm::kBsp || strategy.algorithm == Algorithm::kPipe ||
         strategy.algorithm == Algorithm::kLocal;
}

class MpiTrainTest : public MpiTest {
 protected:
  void SetUp() override {
    MpiTest::SetUp();
    if (!kHasModels) {
      SKIP_AS_INAPPLICABLE("built without LibTorch");
    }
  }

  static std::string threads(const std::string& arguments) {
    return "'" SLUICE_BINARY "' " + arguments + " --run threads";
  }
  static std::string processes(const std::string& arguments) {
    return "'" SLUICE_BINARY "' " + arguments + " --run processes";
  }
  static nlohmann::json summary_of(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
};

}  // namespace sluice
