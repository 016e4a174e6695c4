#include "nodes/elastic_server.h"

#include "base/check.h"
#include "partition/about.h"

namespace sluice {

ElasticServer::ElasticServer(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self)
    : chunks_(std::move(chunks)),
      self_(self),
      pull_(static_cast<float>(job.strategy.elasticity > 0
                                   ? job.strategy.elasticity
                                   : 0.9 / static_cast<double>(job.topology.workers()))) {}

void ElasticServer::handle(const Event& event, Effects& effects) {
  if (const auto* received = std::get_if<Received>(&event)) {
    const Message& visit = received->message;
    check(visit.kind == MessageKind::kElastic, "a centre understands elastic visits");
    Work work = work_on(*chunks_, visit.chunk, WorkKind::kElastic, self_, visit.iteration);
    work.origin = visit.from;
    work.pull = pull_;
    work.sources.push_back(received->payload);
    effects.start(std::move(work));
  } else if (const auto* finished = std::get_if<Finished>(&event)) {
    const Work& work = finished->work;
    Message answer = message_about(*chunks_, work.chunk, MessageKind::kParameters, self_,
                                   work.origin, work.iteration);
    answer.payload_bytes = finished->output.size();
    effects.send(answer, finished->output);
  }
}

BufferRange ElasticServer::landing(const Message& /*message*/) const { return {}; }

}  // namespace sluice
