#include "planner/arithmetic_cost.h"

#include <vector>

#include "base/median.h"
#include "state/workspace.h"

namespace sluice {
namespace {

constexpr std::int64_t kParams = 1 << 20;  // exceeds the caches, as incoming gradients do
constexpr int kRepetitions = 9;

std::vector<float> some_values() {
  std::vector<float> values(static_cast<std::size_t>(kParams));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 1000) * 1e-3F - 0.5F;
  }
  return values;
}

// A square matrix, for codecs that need one.
std::vector<Layer> one_matrix() {
  constexpr std::int64_t kRows = 1 << 10;
  std::vector<Layer> layers = lay_out({"all"}, {kParams});
  layers.front().matrix = {0, kRows, kParams / kRows};
  return layers;
}

class Bench {
 public:
  Bench(const Strategy& strategy, std::function<Time()> now)
      : now_(std::move(now)),
        parameters_(some_values()),
        gradients_(some_values()),
        workspace_(parameters_, {gradients_}, {}, strategy, Topology(1, 1, 0), one_matrix()) {}

  // Returns the output of the last repetition.
  double ns_per_byte(const Work& work, Payload* output = nullptr) {
    std::vector<Duration> times;
    for (int i = 0; i <= kRepetitions; ++i) {
      const Time begin = now_();
      Payload made = workspace_.execute(work);
      if (i > 0) {  // the first one is a warm-up
        times.push_back(now_() - begin);
      }
      if (output != nullptr) {
        *output = std::move(made);
      }
    }
    constexpr Bytes kBytes = kParams * kFloatBytes;
    return to_us(median_of(std::move(times))) * 1e3 / static_cast<double>(kBytes);
  }

 private:
  std::function<Time()> now_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  Workspace workspace_;
};

Work work_of(WorkKind kind, std::vector<Payload> sources) {
  Work work;
  work.kind = kind;
  work.coded = kind == WorkKind::kDecode;
  work.iteration = 1;
  work.range = {0, kParams};
  work.sources = std::move(sources);
  return work;
}

}  // namespace

ArithmeticCost measured_arithmetic(const std::function<Time()>& now) {
  Bench plain(Strategy{}, now);
  const Payload gradient = Payload::owning(some_values());
  return {.reduce_ns_per_byte = plain.ns_per_byte(work_of(WorkKind::kReduce, {gradient})),
          .update_ns_per_byte = plain.ns_per_byte(work_of(WorkKind::kUpdate, {gradient})),
          .code_ns_per_byte = measured_packing(Codec::kQuantise8, now)};
}

double measured_packing(Codec codec, const std::function<Time()>& now) {
  if (codec == Codec::kNone) {
    return 0;
  }
  Strategy packed;
  packed.codec = codec;
  packed.dgc.warm_up = false;
  Bench coding(packed, now);
  if (packed.factored()) {
    return (coding.ns_per_byte(work_of(WorkKind::kLeftFactor, {})) +
            coding.ns_per_byte(work_of(WorkKind::kRightFactor, {})) +
            coding.ns_per_byte(work_of(WorkKind::kFromFactors, {}))) /
           3;
  }
  Payload code;
  Work pack = work_of(WorkKind::kEncode, {});
  pack.feedback = traits_of(codec).needs_feedback;
  const double encode = coding.ns_per_byte(pack, &code);
  if (packed.sparse()) {
    return encode;
  }
  return (encode + coding.ns_per_byte(work_of(WorkKind::kDecode, {code}))) / 2;
}

}  // namespace sluice
