#include "learners/replay_learner.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/zeroed_buffer.h"

namespace sluice {
namespace {

constexpr std::int64_t kPeriod = 251;

// Never zero, so that a sum of several gradients differs from each of them.
float content(std::int64_t index) { return 1e-4F * static_cast<float>(1 + index % kPeriod); }

// Copied rather than computed: a replay should cost no processor time.
void fill(std::span<float> values, Range range) {
  static const std::vector<float> kPattern = [] {
    constexpr std::int64_t kPeriods = 16;
    std::vector<float> all;
    for (std::int64_t i = 0; i < kPeriods * kPeriod; ++i) {
      all.push_back(content(i));
    }
    return all;
  }();
  for (std::int64_t i = range.begin; i < range.end;) {
    const auto source = std::span(kPattern).subspan(static_cast<std::size_t>(i % kPeriod));
    const std::int64_t count =
        std::min<std::int64_t>(range.end - i, static_cast<std::int64_t>(source.size()));
    std::copy_n(source.begin(), count, values.begin() + i);
    i += count;
  }
}

class ReplayLearner final : public Learner {
 public:
  ReplayLearner(Profile profile, std::shared_ptr<const Sleeper> sleeper,
                std::function<double(Iteration)> pace)
      : profile_(std::move(profile)),
        sleeper_(std::move(sleeper)),
        pace_(std::move(pace)),
        layers_(profile_.layout()),
        parameters_(static_cast<std::size_t>(total_params(layers_))),
        gradients_(static_cast<std::size_t>(total_params(layers_))),
        target_(gradients_.values()) {
    for (const Layer& layer : layers_) {
      fill(parameters_.values(), layer.range);
    }
  }

  const std::vector<Layer>& layers() const override { return layers_; }
  std::span<float> parameters() override { return parameters_.values(); }
  std::span<float> gradients() override { return gradients_.values(); }
  void gradients_into(std::span<float> buffer) override { target_ = buffer; }

  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    slowdown_ = pace_ ? pace_(iteration) : 1;
    if (busy_until_) {
      *busy_until_ += sleeper_->now() - ended_;  // between steps nothing is computed
    }
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      if (!hooks.before_layer(LayerId(l)) || !busy_until_.has_value()) {
        busy_until_ = sleeper_->now();
      }
      compute(profile_.layers[l].forward);
    }
    hooks.forward_done();
    for (std::size_t l = layers_.size(); l-- > 0;) {
      write_gradient(layers_[l].range);
      compute(profile_.layers[l].backward);
      hooks.gradient_ready(LayerId(l));
    }
    ended_ = sleeper_->now();
    return std::nullopt;
  }

  std::optional<Evaluation> evaluate() override { return std::nullopt; }

 private:
  // Writes only if needed: at first, and after the gradient was summed with others in place.
  void write_gradient(Range range) {
    if (!range.empty() && target_[static_cast<std::size_t>(range.begin)] != content(range.begin)) {
      fill(target_, range);
    }
  }

  // Times are scaled as in the simulator.
  void compute(Duration time) {
    *busy_until_ += slowdown_ == 1 ? time : from_us(to_us(time) * slowdown_);
    sleeper_->rest_until(*busy_until_);
  }

  Profile profile_;
  std::shared_ptr<const Sleeper> sleeper_;
  std::function<double(Iteration)> pace_;
  double slowdown_ = 1;  // in this step
  std::vector<Layer> layers_;
  ZeroedBuffer parameters_;
  ZeroedBuffer gradients_;
  std::span<float> target_;         // where to write gradients
  std::optional<Time> busy_until_;  // unset before the first step
  Time ended_{0};                   // the step before
};

}  // namespace

LearnerFactory make_replay_learners(const Profile& profile,
                                    const std::shared_ptr<const Sleeper>& sleeper,
                                    const ReplayPace& pace) {
  return [profile, sleeper, pace](std::size_t rank) {
    std::function<double(Iteration)> own;
    if (pace) {
      own = [pace, rank](Iteration iteration) { return pace(rank, iteration); };
    }
    return std::make_unique<ReplayLearner>(profile, sleeper, std::move(own));
  };
}

}  // namespace sluice
