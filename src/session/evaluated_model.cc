#include "session/evaluated_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/check.h"

namespace sluice {
namespace {

template <class T>
void append(std::string& bytes, std::span<const T> values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Calls `f` with the chunks whose server is on this host, or with all.
template <class F>
void for_each_chunk_on(const Assembly& assembly, std::optional<HostId> host, F f) {
  const Topology& topology = assembly.job.topology;
  for (const Chunk& chunk : assembly.chunks->all()) {
    const NodeId server = topology.server(chunk.server);
    if (topology.host_of(server) == host.value_or(topology.host_of(server))) {
      f(chunk, server);
    }
  }
}

// Takes values out of bytes, one range after the other.
class Reader {
 public:
  Reader(const std::string& bytes, std::size_t rank) : bytes_(bytes), rank_(rank) {}

  template <class T>
  void read(std::span<T> into) {
    if (bytes_.size() - at_ < into.size_bytes()) {
      fail();
    }
    std::copy_n(bytes_.data() + at_, into.size_bytes(), reinterpret_cast<char*>(into.data()));
    at_ += into.size_bytes();
  }
  void done() const {
    if (at_ != bytes_.size()) {
      fail();
    }
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error(
        fmt::format("rank {} has sent {} bytes of the model, which is not its part of it", rank_,
                    bytes_.size()));
  }

  const std::string& bytes_;
  std::size_t rank_;
  std::size_t at_ = 0;
};

std::string servers_of(const Assembly& assembly, TrainingState& state, std::optional<HostId> host) {
  std::string bytes;
  for_each_chunk_on(assembly, host, [&](const Chunk& chunk, NodeId server) {
    append<float>(bytes, state.workspace(server).view({Buffer::kParameters, chunk.range}));
  });
  return bytes;
}

std::string sum_of_replicas(const Assembly& assembly, TrainingState& state,
                            std::optional<HostId> host) {
  const Topology& topology = assembly.job.topology;
  // Workers that meet in pairs have global parameters of their own.
  const bool global = traits_of(assembly.job.strategy.algorithm).sends == Sends::kOuterGradients;
  std::vector<double> sum(static_cast<std::size_t>(total_params(assembly.job.layers)));
  for (std::size_t w = 0; w < topology.workers(); ++w) {
    const NodeId worker = topology.worker(w);
    if (topology.host_of(worker) == host.value_or(topology.host_of(worker))) {
      const std::span<const float> own =
          global ? state.workspace(worker).global_parameters() : state.learner(worker).parameters();
      std::transform(sum.begin(), sum.end(), own.begin(), sum.begin(),
                     [](double a, float b) { return a + static_cast<double>(b); });
    }
  }
  std::string bytes;
  append<double>(bytes, sum);
  return bytes;
}

// The copy of the first worker there.
std::string global_of(const Assembly& assembly, TrainingState& state, std::optional<HostId> host) {
  const Topology& topology = assembly.job.topology;
  std::string bytes;
  for (std::size_t w = 0; w < topology.workers() && bytes.empty(); ++w) {
    const NodeId worker = topology.worker(w);
    if (topology.host_of(worker) == host.value_or(topology.host_of(worker))) {
      append<float>(bytes, state.workspace(worker).global_parameters());
    }
  }
  return bytes;
}

}  // namespace

EvaluatedModel evaluated_model(const Strategy& strategy) {
  if (traits_of(strategy.algorithm).sends == Sends::kOuterGradients &&
      strategy.exchange != Exchange::kGossip) {
    return EvaluatedModel::kGlobal;
  }
  if (traits_of(strategy.algorithm).replicas_agree()) {
    return EvaluatedModel::kReplica;
  }
  return strategy.uses_servers() ? EvaluatedModel::kServers : EvaluatedModel::kMean;
}

std::string contribution_of(const Assembly& assembly, TrainingState& state,
                            std::optional<HostId> host) {
  switch (evaluated_model(assembly.job.strategy)) {
    case EvaluatedModel::kReplica:
      return "";
    case EvaluatedModel::kServers:
      return servers_of(assembly, state, host);
    case EvaluatedModel::kMean:
      return sum_of_replicas(assembly, state, host);
    case EvaluatedModel::kGlobal:
      return global_of(assembly, state, host);
  }
  fail_check("there is no such model");
}

std::vector<float> model_from(const Assembly& assembly,
                              std::span<const std::string> contributions) {
  const bool by_host = contributions.size() > 1;
  std::vector<float> model(static_cast<std::size_t>(total_params(assembly.job.layers)));
  const EvaluatedModel kind = evaluated_model(assembly.job.strategy);
  const bool is_mean = kind == EvaluatedModel::kMean;
  std::vector<double> sum(is_mean ? model.size() : 0);
  std::vector<double> part(sum.size());
  const Topology& topology = assembly.job.topology;
  std::size_t living = topology.workers();
  bool has_global = false;
  for (std::size_t r = 0; r < contributions.size(); ++r) {
    if (is_mean && contributions[r].empty()) {  // its host was lost
      living -= topology.workers_per_host();
      continue;
    }
    if (kind == EvaluatedModel::kGlobal && (has_global || contributions[r].empty())) {
      continue;
    }
    Reader reader(contributions[r], r);
    if (is_mean) {
      reader.read(std::span(part));
      std::transform(sum.begin(), sum.end(), part.begin(), sum.begin(), std::plus<>());
    } else if (kind == EvaluatedModel::kGlobal) {
      reader.read(std::span(model));
      has_global = true;
    } else {
      for_each_chunk_on(
          assembly, by_host ? std::optional(HostId(r)) : std::nullopt,
          [&](const Chunk& chunk, NodeId /*server*/) {
            reader.read(std::span(model).subspan(static_cast<std::size_t>(chunk.range.begin),
                                                 static_cast<std::size_t>(chunk.range.size())));
          });
    }
    reader.done();
  }
  const auto workers = static_cast<double>(living);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    model[i] = static_cast<float>(sum[i] / workers);
  }
  return model;
}

void RunModel::set(std::span<const float> parameters) {
  if (own_ == nullptr) {
    own_ = make_own_();
    learner_ = own_.get();
  }
  check(parameters.size() == own_->parameters().size(), "the model has as many parameters");
  std::ranges::copy(parameters, own_->parameters().begin());
  own_->estimate_statistics();
}

}  // namespace sluice
