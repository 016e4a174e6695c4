#pragma once

#include "partition/chunk_map.h"
#include "protocol/work.h"
#include "wire/message.h"

namespace sluice {

// Work on a whole chunk and messages about one, with the fields that follow from the chunk.

inline Work work_on(const ChunkMap& chunks, ChunkId chunk, WorkKind kind, NodeId node,
                    Iteration iteration) {
  Work work;
  work.kind = kind;
  work.priority = chunks[chunk].priority;
  work.node = node;
  work.origin = node;
  work.chunk = chunk;
  work.iteration = iteration;
  work.range = chunks[chunk].range;
  return work;
}

inline Message message_about(const ChunkMap& chunks, ChunkId chunk, MessageKind kind, NodeId from,
                             NodeId to, Iteration iteration) {
  Message message;
  message.kind = kind;
  message.priority = chunks[chunk].priority;
  message.from = from;
  message.to = to;
  message.chunk = chunk;
  message.iteration = iteration;
  return message;
}

}  // namespace sluice
