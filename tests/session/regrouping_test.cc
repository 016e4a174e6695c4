// Processes that agree, by texts, on the sums that are left after a loss.
#include "session/regrouping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "nodes/regrouped_job.h"
#include "partition/fragments.h"
#include "support/regrouping.h"

namespace sluice {
namespace {

using testing::ShuffledRun;
using testing::ShuffledWorld;

constexpr Iteration kPhase = 13;  // with a delay of 2 the exchange of 12 is under way
constexpr std::size_t kWorkers = 4;
const HostId kVictim{2};

// Texts between ranks, in order.
class Mail {
 public:
  void send(std::size_t from, std::size_t to, std::string text) {
    const std::lock_guard lock(mutex_);
    texts_[{from, to}].push_back(std::move(text));
    came_.notify_all();
  }
  std::string receive(std::size_t from, std::size_t to) {
    std::unique_lock lock(mutex_);
    std::deque<std::string>& texts = texts_[{from, to}];
    came_.wait(lock, [&] { return !texts.empty(); });
    std::string text = std::move(texts.front());
    texts.pop_front();
    return text;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<std::string>> texts_;
};

// One of kWorkers processes, each a host, of which the victim is lost.
class Survivor final : public ProcessGroup {
 public:
  Survivor(Mail& mail, std::size_t rank) : mail_(mail), rank_(rank) {}

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return kWorkers; }
  std::optional<HostId> own_host() const override { return HostId(rank_); }
  std::vector<std::size_t> lost() const override { return {kVictim.index()}; }

  std::string from_leader(const std::string& text, const std::string& /*what*/) override {
    if (rank_ != 0) {
      return mail_.receive(0, rank_);
    }
    for (const std::size_t other : others()) {
      mail_.send(0, other, text);
    }
    return text;
  }
  std::vector<std::string> to_leader(const std::string& text,
                                     const std::string& /*what*/) override {
    if (rank_ != 0) {
      mail_.send(rank_, 0, text);
      return {};
    }
    std::vector<std::string> texts(kWorkers);
    texts[0] = text;
    for (const std::size_t other : others()) {
      texts[other] = mail_.receive(other, 0);
    }
    return texts;
  }
  void send_text(std::size_t to, const std::string& text) override {
    ++sent;
    mail_.send(rank_, to, text);
  }
  std::string receive_text(std::size_t from, const std::string& /*what*/) override {
    return mail_.receive(from, rank_);
  }

  std::size_t sent = 0;

  std::string scatter(const std::vector<std::string>& /*texts*/,
                      const std::string& /*what*/) override {
    fail();
  }
  void all_reduce(const Numbers& /*numbers*/, Reduction /*reduction*/) override { fail(); }
  void broadcast_from(std::size_t /*root*/, std::span<std::byte> /*bytes*/) override { fail(); }
  std::vector<std::string> all_gather(const std::string& /*own*/) override { fail(); }
  void meet() override { fail(); }
  std::vector<std::size_t> machines() override { fail(); }
  NetworkFacts tune(Job& /*job*/, const ChosenSizes& /*chosen*/) override { fail(); }
  std::optional<Survey> survey(const SurveySpec& /*spec*/) override { fail(); }
  std::optional<int> train(const Phase& /*phase*/) override { fail(); }
  void attend(const std::function<void()>& /*work*/) override { fail(); }
  void abort(int /*code*/) override { fail(); }

 private:
  [[noreturn]] static void fail() { fail_check("nobody needs this to regroup"); }
  std::vector<std::size_t> others() const {
    std::vector<std::size_t> ranks;
    for (std::size_t r = 0; r < kWorkers; ++r) {
      if (r != rank_ && r != kVictim.index()) {
        ranks.push_back(r);
      }
    }
    return ranks;
  }

  Mail& mail_;
  std::size_t rank_;
};

// A run that has lost the victim after so many steps of the world.
std::unique_ptr<ShuffledRun> run_with_a_loss(std::uint64_t seed, std::uint64_t steps) {
  Job job;
  job.layers = testing::toy_learners(testing::kLayers, 1).front()->layers();
  job.topology = Topology(kWorkers, 1, 0);
  job.strategy.algorithm = Algorithm::kLocal;
  job.strategy.exchange = Exchange::kAllReduce;
  job.strategy.cadence = {
      .every = 4, .outer = Outer::kNesterov, .delay = static_cast<Iteration>(seed % 3)};
  job.strategy.slice_params = 16;
  job.strategy.segment_params = 9;
  job.strategy.error_feedback = seed % 2 == 0;
  job.strategy.codec = seed % 2 == 0 ? Codec::kQuantise8 : Codec::kNone;
  const UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 0};
  auto run = std::make_unique<ShuffledRun>(job, rule, seed, kPhase);
  run->world.disturb = [left = steps](ShuffledWorld& world) mutable {
    if (left-- == 0) {
      world.kill(kVictim);
    }
  };
  check(run->run(), "those that are left reach the end");
  return run;
}

// As bits: where a sum was given up there may be no number.
std::vector<std::uint32_t> bits_of(ShuffledRun& run, std::size_t rank) {
  std::vector<float> all = run.parameters(rank);
  Workspace& workspace = run.world.state().workspace(NodeId(rank));
  const auto add = [&](std::span<const float> part) {
    all.insert(all.end(), part.begin(), part.end());
  };
  std::ranges::for_each(workspace.in_common({0, static_cast<std::int64_t>(all.size())}), add);
  for (const Remembered& one : workspace.remembered()) {
    if (one.name == "residual") {
      add(one.parts.front());
    }
  }
  std::vector<std::uint32_t> bits;
  std::ranges::transform(all, std::back_inserter(bits),
                         [](float value) { return std::bit_cast<std::uint32_t>(value); });
  return bits;
}

TEST(RegroupingThreads, WhatTextsCarryIsWhatMemoryHas) {
  std::size_t sent = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto by_text = run_with_a_loss(seed, 40 * seed);
    Mail mail;
    std::vector<std::unique_ptr<Survivor>> groups;
    std::vector<std::optional<Job>> jobs(kWorkers);
    std::vector<std::vector<Iteration>> at(kWorkers, std::vector<Iteration>(kWorkers, kPhase));
    {
      std::vector<std::jthread> threads;
      for (const std::size_t rank : {0, 1, 3}) {
        at[rank][kVictim.index()] = 3;  // where it was last known to be
        Survivor& group = *groups.emplace_back(std::make_unique<Survivor>(mail, rank));
        threads.emplace_back([&, rank] {
          jobs[rank] = regroup({.group = group,
                                .assembly = by_text->assembly,
                                .state = by_text->world.state(),
                                .at = at[rank]},
                               {});
        });
      }
    }
    for (const auto& group : groups) {
      sent += group->sent;
    }
    const auto in_memory = run_with_a_loss(seed, 40 * seed);
    testing::regroup(*in_memory, {kVictim}, kPhase);
    const Job& expected = in_memory->assembly.job;
    for (const std::size_t rank : {0, 1, 3}) {
      ASSERT_TRUE(jobs[rank]) << seed;
      EXPECT_EQ(jobs[rank]->absent, expected.absent);
      EXPECT_EQ(jobs[rank]->given_up, expected.given_up) << seed;
      EXPECT_EQ(jobs[rank]->first, kPhase);
      EXPECT_EQ(at[rank], std::vector<Iteration>(kWorkers, kPhase));
      EXPECT_EQ(bits_of(*by_text, rank), bits_of(*in_memory, rank)) << seed;
    }
  }
  EXPECT_GT(sent, 0U) << "no survivor had more sums than another";
}

// By chunk, of the first worker: what its outer step would take; empty if there is no sum.
std::vector<std::vector<float>> means_used_later(ShuffledRun& run) {
  const Job& job = run.assembly.job;
  const Cadence& cadence = job.strategy.cadence;
  const auto fragments = fragments_of(*run.assembly.chunks, cadence.fragments);
  const auto members = static_cast<float>(kWorkers - job.absent.size());
  std::vector<std::vector<float>> means(fragments.size());
  for (std::size_t c = 0; c < means.size(); ++c) {
    const Iteration begun = cadence.under_way_at(kPhase, fragments[c]);
    if (begun > 0 && run.assembly.last_sums(NodeId(0))[c] == begun) {
      const BufferRange sum{Buffer::kGradients, (*run.assembly.chunks)[ChunkId(c)].range,
                            job.strategy.sum_slot(begun)};
      for (const float value : run.world.state().workspace(NodeId(0)).view(sum)) {
        means[c].push_back(value / members);
      }
    }
  }
  return means;
}

TEST(RegroupingThreads, MeansThatAreUsedLaterStayWhoeverIsLostOrBack) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto run = run_with_a_loss(seed, 1600 + 40 * seed);
    const auto of_all = means_used_later(*run);
    testing::regroup(*run, {kVictim}, kPhase);
    const auto of_three = means_used_later(*run);
    testing::rejoin(*run, kVictim, HostId(3), kPhase);
    const auto of_four = means_used_later(*run);
    ASSERT_EQ(of_three.size(), of_all.size());
    for (std::size_t c = 0; c < of_three.size(); ++c) {
      ASSERT_EQ(of_three[c].size(), of_four[c].size());
      for (std::size_t i = 0; i < of_three[c].size(); ++i) {
        EXPECT_NEAR(of_four[c][i], of_three[c][i], 1e-6F * std::abs(of_three[c][i])) << seed;
        if (!of_all[c].empty()) {  // this worker had it before it caught up
          EXPECT_NEAR(of_all[c][i], of_three[c][i], 1e-6F * std::abs(of_three[c][i])) << seed;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 0U);
}

TEST(RegroupingThreads, NothingChangesIfTheJobKnowsWhoIsAbsent) {
  const auto run = run_with_a_loss(3, 120);
  testing::regroup(*run, {kVictim}, kPhase);
  Mail mail;
  Survivor leader(mail, 0);
  std::vector<Iteration> at(kWorkers, kPhase);
  EXPECT_FALSE(misses_somebody(leader, run->assembly.job));
  EXPECT_FALSE(regroup(
      {.group = leader, .assembly = run->assembly, .state = run->world.state(), .at = at}, {}));
  Job again = job_with(std::vector{PeerJoined{kVictim, 20}}, run->assembly.job, 20);
  EXPECT_TRUE(again.absent.empty());
  EXPECT_EQ(again.first, 20);
  EXPECT_TRUE(misses_somebody(leader, again));
}

}  // namespace
}  // namespace sluice
