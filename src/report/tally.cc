#include "report/tally.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice {
namespace {

// Where the newest `count` intervals begin; the end of time if there are fewer.
Time begin_of_newest(const Intervals& intervals, std::size_t count) {
  const auto kept = intervals.kept();
  return kept.size() < count ? Time::max() : kept[kept.size() - count].begin;
}

void keep_newest(Intervals& intervals, std::size_t max) {
  if (intervals.kept().size() > max) {
    intervals.forget(begin_of_newest(intervals, max / 2));
  }
}

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  messages += other.messages;
  bytes += other.bytes;
  return *this;
}

Tally::Tally(const Topology& topology, Iteration steady_from, std::size_t max_intervals)
    : topology_(topology),
      steady_from_(steady_from),
      max_intervals_(max_intervals),
      hosts_(topology.hosts()) {
  for (std::size_t rank = 0; rank < topology.workers(); ++rank) {
    Host& host = host_of(topology.worker(rank));
    host.workers.emplace_back();
    host.computed_until.emplace_back(0);
  }
}

void Tally::computed(NodeId worker, LayerId, Iteration iteration, Pass, Time begin, Time end) {
  Host& host = host_of(worker);
  const std::size_t local = worker.index() % topology_.workers_per_host();
  const std::scoped_lock lock(host.mutex);
  host.workers[local].compute += end - begin;
  host.computed_until[local] = end;
  host.compute.add({begin, end});
  if (iteration >= steady_from_) {
    host.workers[local].steady_compute += end - begin;
    host.steady_compute.add({begin, end});
  }
  settle(host);
}

void Tally::waited(NodeId worker, LayerId, Iteration, Time begin, Time end) {
  Host& host = host_of(worker);
  const std::scoped_lock lock(host.mutex);
  host.workers[worker.index() % topology_.workers_per_host()].waited += end - begin;
}

void Tally::copied(NodeId worker, LayerId, Iteration, Passage, Time begin, Time end) {
  Host& host = host_of(worker);
  const std::scoped_lock lock(host.mutex);
  host.copies.add({begin, end});
}

void Tally::sent(const Message& message, Time begin, Time end) {
  Host& host = host_of(message.from);
  const std::scoped_lock lock(host.mutex);
  host.sent[static_cast<std::size_t>(message.kind)] += {1, message.payload_bytes};
  host.egress.add({begin, end});
  keep_newest(host.egress, max_intervals_);
  communicate(host, {begin, end});
}

void Tally::received(const Message& message, Time begin, Time end) {
  Host& host = host_of(message.to);
  const std::scoped_lock lock(host.mutex);
  host.ingress.add({begin, end});
  keep_newest(host.ingress, max_intervals_);
  communicate(host, {begin, end});
}

void Tally::worked(const Work& work, Time begin, Time end) {
  Host& host = host_of(work.node);
  const std::scoped_lock lock(host.mutex);
  host.work += end - begin;
  host.norms += work.kind == WorkKind::kNorm ? end - begin : Duration{0};
  communicate(host, {begin, end});
}

void Tally::communicate(Host& host, Interval span) {
  host.communication.add(span);
  settle(host);
}

void Tally::settle(Host& host) const {
  if (std::max(host.communication.kept().size(), host.compute.kept().size()) <= max_intervals_) {
    return;
  }
  Time until = std::min(begin_of_newest(host.communication, max_intervals_ / 2),
                        begin_of_newest(host.compute, max_intervals_ / 2));
  for (const Time computed_until : host.computed_until) {
    until = std::min(until, computed_until);
  }
  host.settled_hidden += overlap(host.communication, host.compute, until);
  host.settled_steady += overlap(host.communication, host.steady_compute, until);
  host.settled_copies += overlap(host.copies, host.compute, until);
  host.communication.forget(until);
  host.compute.forget(until);
  host.steady_compute.forget(until);
  host.copies.forget(until);
}

WorkerTally Tally::worker(std::size_t rank) const {
  const Host& host = hosts_[topology_.host_of(topology_.worker(rank)).index()];
  const std::scoped_lock lock(host.mutex);
  return host.workers[rank % topology_.workers_per_host()];
}

HostTally Tally::host(HostId id) const {
  const Host& host = hosts_[id.index()];
  const std::scoped_lock lock(host.mutex);
  if (host.adopted) {
    return *host.adopted;
  }
  return {.egress_busy = host.egress.total(),
          .ingress_busy = host.ingress.total(),
          .work = host.work,
          .norms = host.norms,
          .communication = host.communication.total(),
          .hidden = host.settled_hidden + overlap(host.communication, host.compute),
          .steady_hidden = host.settled_steady + overlap(host.communication, host.steady_compute),
          .copies = host.copies.total(),
          .copies_hidden = host.settled_copies + overlap(host.copies, host.compute),
          .sent = host.sent};
}

std::string Tally::report(HostId id) const {
  const HostTally sums = host(id);
  nlohmann::json report{{"egress_busy", sums.egress_busy.count()},
                        {"ingress_busy", sums.ingress_busy.count()},
                        {"work", sums.work.count()},
                        {"norms", sums.norms.count()},
                        {"communication", sums.communication.count()},
                        {"hidden", sums.hidden.count()},
                        {"steady_hidden", sums.steady_hidden.count()},
                        {"copies", sums.copies.count()},
                        {"copies_hidden", sums.copies_hidden.count()}};
  for (const Traffic& sent : sums.sent) {
    report["sent"].push_back({sent.messages, sent.bytes});
  }
  for (const WorkerTally& worker : hosts_[id.index()].workers) {
    report["workers"].push_back(
        {worker.compute.count(), worker.waited.count(), worker.steady_compute.count()});
  }
  return report.dump();
}

void Tally::adopt(HostId id, const std::string& report) {
  const auto json = nlohmann::json::parse(report);
  const auto duration = [](const nlohmann::json& count) {
    return Duration(count.get<std::int64_t>());
  };
  HostTally sums{.egress_busy = duration(json.at("egress_busy")),
                 .ingress_busy = duration(json.at("ingress_busy")),
                 .work = duration(json.at("work")),
                 .norms = duration(json.at("norms")),
                 .communication = duration(json.at("communication")),
                 .hidden = duration(json.at("hidden")),
                 .steady_hidden = duration(json.at("steady_hidden")),
                 .copies = duration(json.at("copies")),
                 .copies_hidden = duration(json.at("copies_hidden"))};
  for (std::size_t kind = 0; kind < sums.sent.size(); ++kind) {
    sums.sent[kind] = {json.at("sent").at(kind).at(0), json.at("sent").at(kind).at(1)};
  }
  Host& host = hosts_[id.index()];
  const std::scoped_lock lock(host.mutex);
  host.adopted = sums;
  for (std::size_t w = 0; w < host.workers.size(); ++w) {
    const auto& of_worker = json.at("workers").at(w);
    host.workers[w] = {duration(of_worker.at(0)), duration(of_worker.at(1)),
                       duration(of_worker.at(2))};
  }
}

TrafficByKind Tally::sent_by_kind() const {
  TrafficByKind all{};
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const TrafficByKind sent = host(HostId(h)).sent;
    for (std::size_t kind = 0; kind < all.size(); ++kind) {
      all[kind] += sent[kind];
    }
  }
  return all;
}

}  // namespace sluice
