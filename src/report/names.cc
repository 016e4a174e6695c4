#include "report/names.h"

#include <fmt/format.h>

namespace sluice {

std::string_view name_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::kPush:
      return "push";
    case MessageKind::kNotify:
      return "notify";
    case MessageKind::kPull:
      return "pull";
    case MessageKind::kParameters:
      return "parameters";
    case MessageKind::kReduce:
      return "reduce";
    case MessageKind::kGather:
      return "gather";
    case MessageKind::kAllReduce:
      return "allreduce";
    case MessageKind::kElastic:
      return "elastic";
    case MessageKind::kShare:
      return "share";
    case MessageKind::kSwap:
      return "swap";
    case MessageKind::kSwapped:
      return "swapped";
    case MessageKind::kGradient:
      return "gradient";
  }
  return "?";
}

std::string_view name_of(WorkKind kind) {
  switch (kind) {
    case WorkKind::kUpdate:
      return "update";
    case WorkKind::kSum:
      return "sum";
    case WorkKind::kReduce:
      return "add";
    case WorkKind::kBlend:
      return "blend";
    case WorkKind::kElastic:
      return "elastic";
    case WorkKind::kSwap:
      return "swap";
    case WorkKind::kSwapped:
      return "swapped";
    case WorkKind::kEncode:
      return "encode";
    case WorkKind::kDecode:
      return "decode";
    case WorkKind::kMerge:
      return "merge";
    case WorkKind::kPatch:
      return "patch";
    case WorkKind::kChanges:
      return "changes";
    case WorkKind::kNorm:
      return "norm";
    case WorkKind::kOuterGradient:
      return "outer gradient";
    case WorkKind::kOuterStep:
      return "outer step";
    case WorkKind::kTakeOver:
      return "take over";
    case WorkKind::kLeftFactor:
      return "left factor";
    case WorkKind::kRightFactor:
      return "right factor";
    case WorkKind::kFromFactors:
      return "from factors";
  }
  return "?";
}

std::string name_of(NodeId node, const Topology& topology) {
  return topology.is_worker(node) ? fmt::format("worker {}", node.index())
                                  : fmt::format("server {}", topology.server_index(node));
}

ChunkNames chunk_names(const std::vector<Layer>& layers, const ChunkMap& chunks) {
  std::vector<std::string> names;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const auto touched = chunks.layers_of(ChunkId(c));
    const LayerId first = touched.front();
    std::string name = layers[first.index()].name;
    if (touched.size() > 1) {
      name += ".." + layers[touched.back().index()].name;
    } else if (const auto slices = chunks.chunks_of(first); slices.size() > 1) {
      name += fmt::format("/{}", c - slices.front().index());
    }
    names.push_back(std::move(name));
  }
  return [names = std::move(names)](ChunkId chunk) { return names[chunk.index()]; };
}

}  // namespace sluice
