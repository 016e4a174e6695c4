#include "server/shard.h"

#include "base/check.h"

namespace sluice {

Shard::Shard(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self)
    : exchange_(job.strategy.exchange),
      topology_(job.topology),
      chunks_(std::move(chunks)),
      self_(self),
      slots_(chunks_->size()) {}

void Shard::handle(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    switch (received->message.kind) {
      case MessageKind::kPush:
        return on_push(*received, effects);
      case MessageKind::kPull:
        return tell(MessageKind::kParameters, received->message.chunk, received->message.from,
                    effects);
      default:
        fail_check("a server understands push and pull", std::source_location::current());
    }
  }
  if (const auto* finished = std::get_if<Finished>(&event)) {
    on_updated(finished->chunk, effects);
  }
}

BufferRange Shard::landing(const Message&) const { return {}; }

void Shard::on_push(const Received& event, Effects& effects) {
  const Message& push = event.message;
  Slot& slot = slots_[push.chunk.index()];
  check(push.iteration == slot.version + 1, "a gradient goes into the next update of its chunk");
  slot.gradients.resize(topology_.workers());
  slot.gradients[push.from.index()] = event.payload;
  if (++slot.arrived < topology_.workers()) {
    return;
  }
  slot.arrived = 0;
  Work update;
  update.kind = WorkKind::kUpdate;
  update.priority = push.priority;
  update.contributors = static_cast<std::uint32_t>(topology_.workers());
  update.node = self_;
  update.chunk = push.chunk;
  update.iteration = push.iteration;
  update.range = (*chunks_)[push.chunk].range;
  update.sources = std::move(slot.gradients);
  slot.gradients.clear();
  effects.start(std::move(update));
}

void Shard::on_updated(ChunkId chunk, Effects& effects) {
  ++slots_[chunk.index()].version;
  tell_all(exchange_ == Exchange::kBroadcast ? MessageKind::kParameters : MessageKind::kNotify,
           chunk, effects);
}

// Every server begins with another worker, so that not all of them flood the first one.
void Shard::tell_all(MessageKind kind, ChunkId chunk, Effects& effects) {
  const std::size_t workers = topology_.workers();
  const std::size_t first = topology_.server_index(self_) * topology_.workers_per_host();
  for (std::size_t i = 0; i < workers; ++i) {
    tell(kind, chunk, topology_.worker((first + i) % workers), effects);
  }
}

void Shard::tell(MessageKind kind, ChunkId chunk, NodeId worker, Effects& effects) {
  const Chunk& what = (*chunks_)[chunk];
  Message message;
  message.kind = kind;
  message.priority = what.priority;
  message.from = self_;
  message.to = worker;
  message.chunk = chunk;
  message.iteration = slots_[chunk.index()].version;
  Payload payload;
  if (kind == MessageKind::kParameters) {
    payload = effects.borrow(self_, {Buffer::kParameters, what.range});
    message.payload_bytes = payload.size();
  }
  effects.send(message, std::move(payload));
}

}  // namespace sluice
