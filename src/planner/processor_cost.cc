#include "planner/processor_cost.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "nodes/presets.h"
#include "planner/tuning.h"

namespace sluice {
namespace {

// A message that goes eagerly between machines, a usual slice, and a long one.
constexpr std::array<std::int64_t, 3> kSlices{kEagerParams, 50'000, 262'144};
constexpr double kSecondsPerIteration = 0.04;
constexpr Iteration kCountedTo = 6;
constexpr Iteration kWarmUp = 2;

// Notes what the process has used at the start of each iteration of its first worker.
class ProcessorTimes final : public Observer {
 public:
  explicit ProcessorTimes(const std::function<Duration()>& now) : now_(now) {}

  void computed(NodeId, LayerId layer, Iteration iteration, Pass pass, Time, Time) override {
    if (layer.index() == 0 && pass == Pass::kForward && iteration >= kWarmUp) {
      (iteration == kWarmUp ? first_ : last_) = now_();
      iterations_ = iteration - kWarmUp;
    }
  }
  void waited(NodeId, LayerId, Iteration, Time, Time) override {}
  void sent(const Message&, Time, Time) override {}
  void received(const Message&, Time, Time) override {}
  void worked(const Work&, Time, Time) override {}

  Duration per_iteration() const {
    check(iterations_ > 0, "more iterations run than the warm-up has");
    return (last_ - first_) / iterations_;
  }

 private:
  const std::function<Duration()>& now_;
  Duration first_{0};
  Duration last_{0};
  Iteration iterations_ = 0;
};

}  // namespace

// With x messages, y bytes and time t of both ends, and weights 1/t^2, the normal equations of
// t = 2 (a*x + b*y).
MessageCost fit_message_cost(std::span<const ProcessorSample> samples) {
  double xx = 0;
  double xy = 0;
  double yy = 0;
  double xt = 0;
  double yt = 0;
  for (const ProcessorSample& sample : samples) {
    const double t = std::max(to_us(sample.time) * 1e3, 1.0);
    const double x = 2 * sample.messages / t;
    const double y = 2 * sample.bytes / t;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    xt += x;
    yt += y;
  }
  const double determinant = xx * yy - xy * xy;
  check(determinant > 0, "a fit needs two lengths of messages");
  const double a = (xt * yy - yt * xy) / determinant;
  const double b = (yt * xx - xt * xy) / determinant;
  if (a < 0) {
    return {Duration{0}, yt / yy};
  }
  return b < 0 ? MessageCost{from_ns(xt / xx), 0} : MessageCost{from_ns(a), b};
}

MessageCost measured_message_cost(const Job& job, const ArithmeticCost& arithmetic,
                                  const TrainAside& train,
                                  const std::function<Duration()>& processor_time) {
  const auto hosts = static_cast<double>(job.topology.hosts());
  const double elsewhere = (hosts - 1) / hosts;
  const double bytes_in_time = kSecondsPerIteration * 1e9 / job.link.ns_per_byte;
  std::vector<ProcessorSample> samples;
  for (const std::int64_t slice : kSlices) {
    Job alone = job;
    alone.strategy = find_preset("slicing")->strategy;
    alone.strategy.slice_params = slice;
    tune_for_link(alone, {.slice = true});
    alone.strategy.peer_credit = std::max(alone.strategy.peer_credit, 2 * slice * kFloatBytes);
    alone.groups = {};
    alone.first = 0;
    // As many slices for every server.
    const auto rounds = static_cast<std::int64_t>(
        bytes_in_time / (2 * elsewhere * hosts * static_cast<double>(slice * kFloatBytes)));
    const std::int64_t slices =
        std::max<std::int64_t>(rounds, 1) * static_cast<std::int64_t>(job.topology.hosts());
    alone.layers = lay_out({"slices"}, {slices * slice});
    ProcessorTimes times(processor_time);
    train(assemble(std::move(alone)), kCountedTo, times);
    const auto bytes = static_cast<double>(slices * slice * kFloatBytes);
    const Duration adding =
        from_ns(bytes / hosts *
                ((hosts - 1) * arithmetic.reduce_ns_per_byte + arithmetic.update_ns_per_byte));
    samples.push_back({.messages = 2 * elsewhere * static_cast<double>(slices),
                       .bytes = 2 * elsewhere * bytes,
                       .time = std::max(times.per_iteration() - adding, Duration{0})});
  }
  return fit_message_cost(samples);
}

}  // namespace sluice
