#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "learners/learner.h"
#include "model/names.h"
#include "model/strategy.h"
#include "nodes/assembly.h"
#include "state/training_state.h"

namespace sluice {

// Which parameters are the result of a run, to be evaluated and saved.
enum class EvaluatedModel : std::uint8_t {
  kReplica,  // any worker's: all have the same
  kServers,  // those of the servers, in EASGD the center variable
  kMean,  // the mean of all workers; of their global parameters, if they make outer steps in pairs
  kGlobal,  // the global parameters, of which each worker has a copy
};

inline constexpr std::array kEvaluatedModelNames{
    Names<EvaluatedModel>{EvaluatedModel::kReplica, "replica"},
    Names<EvaluatedModel>{EvaluatedModel::kServers, "servers"},
    Names<EvaluatedModel>{EvaluatedModel::kMean, "mean of the workers"},
    Names<EvaluatedModel>{EvaluatedModel::kGlobal, "global parameters"},
};

EvaluatedModel evaluated_model(const Strategy& strategy);

// Whether it takes what all processes have to make it; else each has all of it.
inline bool is_in_parts(EvaluatedModel model) {
  return model == EvaluatedModel::kServers || model == EvaluatedModel::kMean;
}

// What the nodes of a host, or of all hosts, have of it, as bytes. Nobody may change it meanwhile.
std::string contribution_of(const Assembly& assembly, TrainingState& state,
                            std::optional<HostId> host);
// The whole from the contributions of the hosts, by rank, or from a single one of all hosts; that
// of a lost host is empty. Throws if they are not as long as they must be.
std::vector<float> model_from(const Assembly& assembly, std::span<const std::string> contributions);

// The evaluated model as a learner: worker 0's replica, or one of its own with other parameters.
class RunModel {
 public:
  RunModel(Learner& replica, std::function<std::unique_ptr<Learner>()> make_own)
      : learner_(&replica), make_own_(std::move(make_own)) {}

  // Takes these parameters instead of the replica's, and statistics that go with them.
  void set(std::span<const float> parameters);
  Learner& learner() { return *learner_; }

 private:
  Learner* learner_;
  std::function<std::unique_ptr<Learner>()> make_own_;
  std::unique_ptr<Learner> own_;
};

}  // namespace sluice
