// The simulator against the papers' equations.
#include "planner/closed_forms.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "collectives/cost.h"
#include "nodes/presets.h"
#include "partition/merge.h"
#include "planner/allreduce_cost.h"
#include "support/nets.h"
#include "support/simulated.h"

namespace sluice {
namespace {

using testing::any_allreduce;
using testing::any_net;
using testing::anywhere;
using testing::point;
using testing::run_simulated;

// ---- MG-WFBP: the channel that takes a + b*M ----------------------------------------------------

// The equations have a barrier: forward waits for all messages. Sluice has none. With fifo the
// message of the first layer with parameters is the last one, so that layer waits for all, too; but
// layers without parameters before it run while the last messages are in flight.
Duration without_barrier(Duration iteration, const Profile& profile) {
  Duration ahead{0};
  for (const LayerProfile& layer : profile.layers) {
    if (layer.params > 0) {
      break;
    }
    ahead += layer.forward;
  }
  return std::max(iteration - ahead, profile.compute());
}

struct Channel {
  Cluster cluster;
  AllReduceCost cost;  // synchronisation included
};

Channel any_channel() {
  Channel channel;
  channel.cluster.topology = Topology(static_cast<std::size_t>(*anywhere(1, 3)), 1, 0);
  channel.cluster.allreduce = any_allreduce();
  channel.cluster.sync = from_us(static_cast<double>(*anywhere(0, 5)));
  channel.cost = *channel.cluster.allreduce;
  channel.cost.startup += channel.cluster.sync;
  return channel;
}

Duration simulated_wfbp(const Profile& profile, const Channel& channel) {
  return run_simulated(profile, channel.cluster,
                       point(Exchange::kAllReduce, Partition::kLayer, Order::kFifo))
      .result.iteration_time();
}

RC_GTEST_PROP(ChannelEquations, WfbpIsEquations6To8, ()) {
  const Profile profile = any_net(20);
  const Channel channel = any_channel();
  RC_ASSERT(simulated_wfbp(profile, channel) ==
            without_barrier(wfbp_iteration(profile, channel.cost), profile));
}

// All layers have parameters; before the gradient of layer l - 1 is final, the message of layer l
// takes up to half of that time if l > bottleneck, and longer than it otherwise.
Profile net_with_bottleneck(const AllReduceCost& cost, std::size_t layers, std::size_t bottleneck) {
  Profile profile;
  for (std::size_t l = 0; l < layers; ++l) {
    profile.layers.push_back({"L" + std::to_string(l), *anywhere(1, 4000),
                              from_us(static_cast<double>(*anywhere(0, 20))), from_us(1)});
  }
  for (std::size_t l = 1; l < layers; ++l) {
    const Duration message = cost.time(profile.layers[l].params * kFloatBytes);
    const auto part = *anywhere(2, 9);
    profile.layers[l - 1].backward = l > bottleneck ? message * part : message / part;
  }
  return profile;
}

RC_GTEST_PROP(ChannelEquations, WfbpThatHidesAllButOneMessageIsEquation11, ()) {
  const Channel channel = any_channel();
  const auto layers = static_cast<std::size_t>(*anywhere(2, 12));
  const Profile profile = net_with_bottleneck(channel.cost, layers, 0);
  RC_ASSERT(simulated_wfbp(profile, channel) == hidden_iteration(profile, channel.cost));
}

// The message of the last layer is longer than the next step of backward, and the step after that
// makes up for it.
RC_GTEST_PROP(ChannelEquations, WfbpThatCatchesUpIsEquation12, ()) {
  const Channel channel = any_channel();
  Profile profile = net_with_bottleneck(channel.cost, 3, 3);
  const auto message = [&](std::size_t l) {
    return channel.cost.time(profile.layers[l].params * kFloatBytes);
  };
  profile.layers[0].backward = message(2) + message(1);
  RC_ASSERT(simulated_wfbp(profile, channel) == hidden_iteration(profile, channel.cost));
}

RC_GTEST_PROP(ChannelEquations, WfbpWithABottleneckIsEquation13, ()) {
  const Channel channel = any_channel();
  const auto layers = static_cast<std::size_t>(*anywhere(2, 12));
  const auto bottleneck = static_cast<std::size_t>(*anywhere(1, static_cast<int>(layers) - 1));
  const Profile profile = net_with_bottleneck(channel.cost, layers, bottleneck);
  RC_ASSERT(simulated_wfbp(profile, channel) ==
            exposed_iteration(profile, channel.cost, bottleneck));
}

RC_GTEST_PROP(ChannelEquations, MessagesAfterBackwardAreEquation3, ()) {
  Profile profile = any_net(20);
  profile.layers.front().params += 1;
  const Channel channel = any_channel();
  const auto run =
      run_simulated(profile, channel.cluster,
                    point(Exchange::kAllReduce, Partition::kLayer, Order::kAfterBackward));
  RC_ASSERT(run.result.iteration_time() == naive_iteration(profile, channel.cost));
}

RC_GTEST_PROP(ChannelEquations, SingleIsEquation3WithOneMessage, ()) {
  Profile profile = any_net(20);
  profile.layers.front().params += 1;
  const Channel channel = any_channel();
  const auto run = run_simulated(profile, channel.cluster,
                                 point(Exchange::kAllReduce, Partition::kWhole, Order::kFifo));
  RC_ASSERT(run.result.iteration_time() == single_iteration(profile, channel.cost));
}

RC_GTEST_PROP(ChannelEquations, MergedIsEquations20And21, ()) {
  const Profile profile = any_net(20);
  const Channel channel = any_channel();
  for (const Merge how : {Merge::kGreedy, Merge::kOptimal}) {
    Job job = testing::job_for(profile, channel.cluster, find_preset("mg-wfbp")->strategy);
    const MergePlan plan = merge(profile, simulated_allreduce(job, channel.cluster).alone, how);
    RC_ASSERT(plan.iteration == merged_iteration(profile, channel.cost, plan.groups));
    job.groups = plan.groups;
    const auto run = run_simulated(profile, channel.cluster, job);
    RC_ASSERT(run.result.iteration_time() == without_barrier(plan.iteration, profile));
  }
}

// ---- Table II: the collectives on the network ---------------------------------------------------

// A network on which a message takes alpha + beta*M, and otherwise only addition takes time.
struct Links {
  Cluster cluster;
  LinkCost cost;
};

Links any_links(std::size_t hosts) {
  Links links;
  links.cost = {from_us(static_cast<double>(*anywhere(0, 60))),
                *rc::gen::element(0.1, 0.8, 3.0, 25.0), *rc::gen::element(0.0, 0.1, 2.0)};
  links.cluster.topology = Topology(hosts, 1, 0);
  links.cluster.latency = links.cost.startup;
  links.cluster.bandwidth_gbps = 8 / links.cost.ns_per_byte;
  links.cluster.reduce_ns_per_byte = links.cost.reduce_ns_per_byte;
  links.cluster.update_ns_per_byte = 0;
  links.cluster.header_bytes = 0;
  return links;
}

Profile one_layer(std::int64_t params, double forward_us, double backward_us) {
  return testing::profile_of({params}, forward_us, backward_us);
}

// Times are rounded to picoseconds for each message.
bool equal_to_rounding(Duration a, Duration b) { return std::chrono::abs(a - b) <= from_ns(1); }

class TableTwo : public ::testing::TestWithParam<Collective> {};

TEST_P(TableTwo, IsTheSimulatedTimeForPowersOfTwo) {
  Strategy strategy = point(Exchange::kAllReduce, Partition::kWhole, Order::kFifo);
  strategy.collective = GetParam();
  strategy.segment_params = 1 << 20;  // the closed forms have one segment
  const bool holds = rc::check([&] {
    const auto workers = std::size_t{1} << static_cast<std::size_t>(*anywhere(0, 5));
    const Links links = any_links(workers);
    const auto params = static_cast<std::int64_t>(workers) * *anywhere(1, 5000);
    const auto run = run_simulated(one_layer(params, 0, 0), links.cluster, strategy, 1);
    const AllReduceCost cost = collective_cost(load_of(GetParam(), {.size = workers}), links.cost);
    RC_ASSERT(equal_to_rounding(run.result.end, cost.time(params * kFloatBytes)));
  });
  EXPECT_TRUE(holds);
}

INSTANTIATE_TEST_SUITE_P(Collectives, TableTwo, ::testing::ValuesIn(kPlannedCollectives),
                         [](const auto& of) {
                           std::string name(name_of(kCollectiveNames, of.param));
                           std::erase(name, '-');
                           return name;
                         });

// ---- Pipe-SGD and Analysis ----------------------------------------------------------------------

RC_GTEST_PROP(NetworkEquations, DSyncIsEquation2, ()) {
  const std::size_t workers = std::size_t{1} << static_cast<std::size_t>(*anywhere(0, 4));
  Links links = any_links(workers);
  links.cluster.update_ns_per_byte = *rc::gen::element(0.0, 0.5, 4.0);
  links.cluster.sync = from_us(static_cast<double>(*anywhere(0, 30)));
  const auto params = static_cast<std::int64_t>(workers) * *anywhere(1, 5000);
  const Profile profile = one_layer(params, static_cast<double>(*anywhere(0, 90)),
                                    static_cast<double>(*anywhere(0, 90)));
  const Bytes bytes = params * kFloatBytes;
  const Stages stages{
      from_ns(static_cast<double>(bytes) * links.cluster.update_ns_per_byte), profile.compute(),
      segmented_all_reduce(
          collective_cost(load_of(Collective::kRing, {.size = workers}), links.cost), bytes, 1,
          links.cluster.sync)};
  Strategy strategy = point(Exchange::kAllReduce, Partition::kWhole, Order::kFifo);
  strategy.collective = Collective::kRing;
  const auto run = run_simulated(profile, links.cluster, strategy);
  RC_ASSERT(equal_to_rounding(run.result.iteration_time(), synchronous_iteration(stages)));
}

RC_GTEST_PROP(NetworkEquations, TrafficIsThatOfTableI, ()) {
  const auto workers = static_cast<std::size_t>(*anywhere(1, 6));
  Links links = any_links(workers);
  const Profile profile = any_net(6);
  const double all = static_cast<double>(total_params(profile.layout()) * kFloatBytes) *
                     static_cast<double>(workers);
  Strategy by_ring = point(Exchange::kAllReduce, Partition::kLayer, Order::kFifo);
  by_ring.collective = Collective::kRing;
  const auto ring = run_simulated(profile, links.cluster, by_ring, 1);
  const double saved = 2 * all / static_cast<double>(workers);
  RC_ASSERT(static_cast<double>(ring.result.bytes) == kAllReduceTraffic * all - saved);
  links.cluster.topology = Topology(workers, 1, 1);
  const auto bsp = run_simulated(profile, links.cluster,
                                 point(Exchange::kBroadcast, Partition::kLayer, Order::kFifo), 1);
  RC_ASSERT(static_cast<double>(bsp.result.bytes) == bsp_traffic(1) * all);
}

}  // namespace
}  // namespace sluice
