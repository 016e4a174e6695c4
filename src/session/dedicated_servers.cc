#include "session/dedicated_servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "formats/document.h"

namespace sluice {
namespace {

// Calls f(begin, size) for the range of every chunk that the servers of this host keep.
template <class F>
void for_each_range(const Assembly& assembly, HostId host, F f) {
  const Topology& topology = assembly.job.topology;
  for (const Chunk& chunk : assembly.chunks->all()) {
    if (topology.host_of(topology.server(chunk.server)) == host) {
      f(static_cast<std::size_t>(chunk.range.begin), static_cast<std::size_t>(chunk.range.size()));
    }
  }
}

}  // namespace

std::string to_text(const Outline& outline) {
  Json layers = Json::array();
  for (const Layer& layer : outline.layers) {
    layers.push_back({layer.name, layer.range.size()});
  }
  const Extent& extent = outline.extent;
  return Json{{"layers", layers},
              {"workers", extent.workers},
              {"batch", extent.batch},
              {"iterations", extent.iterations},
              {"per_epoch", extent.per_epoch},
              {"samples_per_epoch", extent.samples_per_epoch},
              {"epochs_evaluated", extent.epochs_evaluated}}
      .dump();
}

Outline outline_from(const std::string& text) {
  const Json json = Json::parse(text);
  std::vector<std::string> names;
  std::vector<std::int64_t> params;
  for (const Json& layer : json.at("layers")) {
    names.push_back(layer.at(0));
    params.push_back(layer.at(1));
  }
  return {.layers = lay_out(names, params),
          .extent = {.workers = json.at("workers"),
                     .batch = json.at("batch"),
                     .iterations = json.at("iterations"),
                     .per_epoch = json.at("per_epoch"),
                     .samples_per_epoch = json.at("samples_per_epoch"),
                     .epochs_evaluated = json.at("epochs_evaluated")}};
}

std::string shards_of(const Assembly& assembly, HostId host, std::span<const float> parameters) {
  std::string bytes;
  for_each_range(assembly, host, [&](std::size_t begin, std::size_t size) {
    const auto range = parameters.subspan(begin, size);
    bytes.append(reinterpret_cast<const char*>(range.data()), range.size_bytes());
  });
  return bytes;
}

ZeroedBuffer shards_from(const std::string& bytes, const Assembly& assembly, HostId host) {
  std::size_t expected = 0;
  for_each_range(assembly, host,
                 [&](std::size_t, std::size_t size) { expected += size * sizeof(float); });
  if (bytes.size() != expected) {
    throw std::runtime_error(
        fmt::format("rank 0 has sent {} bytes of parameters, expected {}", bytes.size(), expected));
  }
  ZeroedBuffer buffer(static_cast<std::size_t>(total_params(assembly.job.layers)));
  const char* next = bytes.data();
  for_each_range(assembly, host, [&](std::size_t begin, std::size_t size) {
    const auto range = buffer.values().subspan(begin, size);
    std::copy_n(next, range.size_bytes(), reinterpret_cast<char*>(range.data()));
    next += range.size_bytes();
  });
  return buffer;
}

}  // namespace sluice
