#include "simgrid/simgrid_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "drivers/virtual/virtual_worker.h"
#include "drivers/virtual/work_time.h"

namespace sluice::testing {
namespace {

namespace s4u = simgrid::s4u;

double seconds_of(Duration length) { return to_us(length) / 1e6; }

// A fluid network: what passes a link at the same time shares it evenly, without slow start and
// without limits from the latency.
void configure_network() {
  for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                              "network/bandwidth-factor:1", "network/latency-factor:1",
                              "network/weight-S:0", "surf/precision:1e-12"}) {
    s4u::Engine::set_config(setting);
  }
}

// SimGrid may run another actor whenever one calls it. So what a protocol asks for is collected
// while it handles an event, and done when it has returned.
class SimGridDriver final : public Effects {
 public:
  explicit SimGridDriver(const SimGridJob& job)
      : job_(job),
        workers_(job.cluster.topology.workers(), VirtualWorker(job.profile, 0, job.iterations)),
        starts_(static_cast<std::size_t>(job.iterations) + 1, 0) {
    make_network();
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      queued_.push_back(s4u::Semaphore::create(0));
      s4u::Actor::create("sender", hosts_[h], [this, h] { send_all(h); })->daemonize();
    }
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      released_.push_back(s4u::Semaphore::create(0));
      s4u::Actor::create("worker", hosts_[host_of(NodeId(w))], [this, w] { work(NodeId(w)); });
    }
  }

  const std::vector<double>& starts() const { return starts_; }

  void send(const Message& message, Payload payload) override {
    const std::size_t from = host_of(message.from);
    if (from == host_of(message.to)) {
      asked_.push_back([this, message, payload] { arrive(message, payload, 0); });
      return;
    }
    asked_.push_back([this, from, message, payload] {
      outgoing_[from].push_back({message, payload});
      queued_[from]->release();
    });
  }
  void start(Work work) override {
    const double length = seconds_of(work_time(work, job_.cluster));
    asked_.push_back([this, length, done = std::move(work)] {
      s4u::Actor::create("arithmetic", hosts_[host_of(done.node)], [this, length, done] {
        s4u::this_actor::sleep_for(length);
        Work finished = done;
        finished.sources.clear();
        deliver(host_of(done.node), Finished{finished, Payload(done.output_bytes)});
      });
    });
  }
  void release(NodeId worker, LayerId layer, Iteration iteration) override {
    workers_[worker.index()].release(layer, iteration);
    asked_.push_back([this, worker] { released_[worker.index()]->release(); });
  }
  Payload borrow(NodeId /*node*/, const BufferRange& what) override {
    return Payload(what.range.size() * kFloatBytes);
  }
  Payload copy(NodeId node, const BufferRange& what) override { return borrow(node, what); }

 private:
  struct Outgoing {
    Message message;
    Payload payload;
  };

  // A link out of and a link into each host, and nothing between them.
  void make_network() {
    auto* zone = s4u::create_full_zone("cluster");
    const std::size_t hosts = job_.cluster.topology.hosts();
    const double bytes_per_second = job_.cluster.bandwidth_gbps * 1e9 / 8;
    std::vector<s4u::Link*> out;
    std::vector<s4u::Link*> in;
    for (std::size_t h = 0; h < hosts; ++h) {
      const std::string name = std::to_string(h);
      hosts_.push_back(zone->create_host("host" + name, 1e9));
      out.push_back(zone->create_link("out" + name, bytes_per_second)->seal());
      in.push_back(zone->create_link("in" + name, bytes_per_second)->seal());
    }
    for (std::size_t from = 0; from < hosts; ++from) {
      for (std::size_t to = 0; to < hosts; ++to) {
        if (from != to) {
          zone->add_route(hosts_[from]->get_netpoint(), hosts_[to]->get_netpoint(), nullptr,
                          nullptr, {s4u::LinkInRoute(out[from]), s4u::LinkInRoute(in[to])}, false);
        }
      }
    }
    zone->seal();
    outgoing_.resize(hosts);
  }

  std::size_t host_of(NodeId node) const { return job_.cluster.topology.host_of(node).index(); }

  void deliver(std::size_t host, const Event& event) {
    job_.hosts[host]->handle(event, *this);
    while (!asked_.empty()) {
      const auto next = std::move(asked_.front());
      asked_.pop_front();
      next();
    }
  }

  void arrive(const Message& message, const Payload& payload, double latency) {
    s4u::Actor::create("arrival", hosts_[host_of(message.to)], [this, message, payload, latency] {
      s4u::this_actor::sleep_for(latency);
      deliver(host_of(message.to), Received{message, payload});
      if (message.wants_return && host_of(message.from) == host_of(message.to)) {
        deliver(host_of(message.from), Returned{message});
      }
    });
  }

  // The latency comes after a message has left, so that it does not keep the next one waiting.
  void send_all(std::size_t host) {
    while (true) {
      queued_[host]->acquire();
      const Outgoing next = std::move(outgoing_[host].front());
      outgoing_[host].pop_front();
      const auto bytes =
          static_cast<std::uint64_t>(next.message.payload_bytes + job_.cluster.header_bytes);
      s4u::Comm::sendto(hosts_[host], hosts_[host_of(next.message.to)], static_cast<double>(bytes));
      arrive(next.message, next.payload, seconds_of(job_.cluster.latency));
      deliver(host, Sent{next.message});
      if (next.message.wants_return) {
        deliver(host, Returned{next.message});
      }
    }
  }

  void work(NodeId id) {
    VirtualWorker& worker = workers_[id.index()];
    deliver(host_of(id), Started{id});
    while (true) {
      while (!worker.can_begin()) {
        released_[id.index()]->acquire();
      }
      const auto [pass, layer, length] = worker.next();
      if (worker.at_start_of_iteration()) {
        double& start = starts_[static_cast<std::size_t>(worker.iteration())];
        start = std::max(start, s4u::Engine::get_clock());
        if (worker.finished()) {
          return;
        }
      }
      s4u::this_actor::sleep_for(seconds_of(length));
      const Iteration iteration = worker.iteration();
      worker.advance();
      if (pass == Pass::kBackward) {
        deliver(host_of(id), GradientReady{id, layer, iteration});
        if (layer.index() == 0) {
          deliver(host_of(id), BackwardDone{id, iteration});
        }
      }
    }
  }

  const SimGridJob& job_;
  std::vector<VirtualWorker> workers_;
  std::vector<double> starts_;
  std::vector<s4u::Host*> hosts_;
  std::deque<std::function<void()>> asked_;
  std::vector<std::deque<Outgoing>> outgoing_;  // by host
  std::vector<s4u::SemaphorePtr> queued_;       // by host: how many are outgoing
  std::vector<s4u::SemaphorePtr> released_;     // by worker: something was
};

void run_and_report(const SimGridJob& job, int out) {
  std::string name = "simgrid";
  std::string quiet = "--log=root.threshold:critical";
  std::vector<char*> arguments{name.data(), quiet.data(), nullptr};
  int count = 2;
  s4u::Engine engine(&count, arguments.data());
  configure_network();
  SimGridDriver driver(job);
  engine.run();
  const auto bytes = std::as_bytes(std::span(driver.starts()));
  if (write(out, bytes.data(), bytes.size()) != ssize_t(bytes.size())) {
    throw std::runtime_error("nobody reads");
  }
}

}  // namespace

std::vector<double> run_in_simgrid(const SimGridJob& job) {
  int ends[2];
  if (pipe(ends) != 0) {
    throw std::runtime_error("no pipe");
  }
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    try {
      run_and_report(job, ends[1]);
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
  }
  close(ends[1]);
  std::vector<double> starts(static_cast<std::size_t>(job.iterations) + 1);
  const auto bytes = std::as_writable_bytes(std::span(starts));
  const ssize_t got = child > 0 ? read(ends[0], bytes.data(), bytes.size()) : -1;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (got != ssize_t(bytes.size()) || status != 0) {
    throw std::runtime_error("SimGrid did not end as it should");
  }
  return starts;
}

}  // namespace sluice::testing
