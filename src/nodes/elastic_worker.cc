#include "nodes/elastic_worker.h"

namespace sluice {

void ElasticWorker::exchange(ChunkId chunk, Iteration iteration, Effects& effects) {
  update(chunk, iteration, BatchShare{}, effects);  // its own batch is the whole
}

void ElasticWorker::on_network(const Event& event, Effects& effects) {
  if (const auto* finished = std::get_if<Finished>(&event)) {
    const auto& [chunk, iteration] = std::tie(finished->work.chunk, finished->work.iteration);
    if (iteration % strategy().period != 0) {
      return complete(chunk, iteration, effects);
    }
    send(about(chunk, MessageKind::kElastic, server_of(chunk), iteration),
         effects.borrow(self(), parameters_of(chunk)), effects);
  } else if (const auto* received = std::get_if<Received>(&event)) {
    complete(received->message.chunk, received->message.iteration, effects);
  }
}

}  // namespace sluice
