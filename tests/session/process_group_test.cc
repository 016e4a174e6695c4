#include "session/process_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "learners/idle_learner.h"
#include "session/dedicated_servers.h"
#include "session/loading.h"
#include "session/thread_group.h"

namespace sluice {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The leader of a group whose other processes say what the leader does, but for some changes.
class LedGroup final : public ProcessGroup {
 public:
  using Change = std::function<void(json& said)>;

  // All on one machine unless it is said otherwise.
  explicit LedGroup(std::vector<Change> others, std::vector<std::size_t> machines = {})
      : others_(std::move(others)), machines_(std::move(machines)) {
    machines_.resize(size(), 0);
  }

  std::size_t rank() const override { return 0; }
  std::size_t size() const override { return 1 + others_.size(); }
  std::optional<HostId> own_host() const override { return HostId(0); }
  std::string from_leader(const std::string& text, const std::string&) override { return text; }
  std::vector<std::string> to_leader(const std::string& text, const std::string&) override {
    std::vector<std::string> texts{text};
    for (const Change& change : others_) {
      json said = json::parse(text);
      change(said);
      texts.push_back(said.dump());
    }
    return texts;
  }
  std::string scatter(const std::vector<std::string>& texts, const std::string&) override {
    scattered_ = texts;
    return texts.at(0);
  }
  void all_reduce(const Numbers&, Reduction) override {}
  void broadcast_from(std::size_t, std::span<std::byte>) override {}
  std::vector<std::string> all_gather(const std::string& own) override { return {own}; }
  void meet() override { have_met_ = true; }
  std::vector<std::size_t> machines() override { return machines_; }
  NetworkFacts tune(Job&, const ChosenSizes&) override { return {}; }
  std::optional<Survey> survey(const SurveySpec&) override { return {}; }
  std::optional<int> train(const Phase&) override { return {}; }
  void attend(const std::function<void()>& work) override { work(); }
  void abort(int) override {}

  bool have_met() const { return have_met_; }
  const std::vector<std::string>& scattered() const { return scattered_; }

 private:
  std::vector<Change> others_;
  std::vector<std::size_t> machines_;
  bool have_met_ = false;
  std::vector<std::string> scattered_;
};

const auto kAlike = [](json&) {};

std::string fault_of(LedGroup::Change change, const Agreement& own = {}) {
  LedGroup group({kAlike, std::move(change)});
  const auto roster = check_in(group, own, {});
  EXPECT_EQ(group.have_met(), static_cast<bool>(roster));
  return roster ? "" : roster.error().message();
}

TEST(ProcessGroupTest, AloneAProcessIsReadyOrSaysWhyNot) {
  const auto group = make_thread_group();
  const auto roster = check_in(*group, {{"seed", "1"}}, {});
  ASSERT_TRUE(roster);
  EXPECT_EQ(roster->hosts.size(), 1U);
  EXPECT_EQ(roster->per_machine, 1U);
  const auto refused = check_in(*group, {}, Error("no data"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "no data");
}

TEST(ProcessGroupTest, ProcessesMustBeAlikeAndReady) {
  const Agreement own{{"preset", "p3"}, {"seed", "1"}};
  EXPECT_EQ(fault_of(kAlike, own), "");
  EXPECT_THAT(fault_of([](json& said) { said["settings"]["seed"] = "2"; }, own),
              HasSubstr(": has seed = 2, but rank 0 has 1; start all with the same settings"));
  EXPECT_THAT(fault_of([](json& said) { said["settings"].erase("seed"); }, own),
              HasSubstr(": has seed = none, but rank 0 has 1"));
  EXPECT_THAT(fault_of([](json& said) { said["version"] = "0.0.1"; }),
              HasSubstr(": is sluice 0.0.1, but rank 0 is sluice "));
  EXPECT_EQ(fault_of([](json& said) {
              said["host"] = "h2";
              said["error"] = "no such file";
            }),
            "rank 2 on h2: no such file");
}

TEST(ProcessGroupTest, WhatAllSayIsSaidOnce) {
  LedGroup group({kAlike, kAlike});
  const auto roster = check_in(group, {}, Error("no data"));
  ASSERT_FALSE(roster);
  EXPECT_EQ(roster.error().message(), "no data");
}

TEST(ProcessGroupTest, ARosterTellsWhoSharesAMachine) {
  const auto on = [](const char* host) { return [=](json& said) { said["host"] = host; }; };
  LedGroup group({kAlike, on("other"), on("other")}, {0, 0, 2, 2});
  const auto roster = check_in(group, {}, {});
  ASSERT_TRUE(roster);
  EXPECT_EQ(roster->per_machine, 2U);
  EXPECT_THAT(text_of(*roster), ::testing::StartsWith("4 processes on "));
  EXPECT_THAT(text_of(*roster), HasSubstr("other"));
}

TEST(ProcessGroupTest, AProcessHasTheWorkersOfItsHost) {
  const Topology topology(3, 2, 1);
  EXPECT_THAT(workers_here(LedGroup({kAlike, kAlike}), topology), ElementsAre(0, 1));
  EXPECT_THAT(workers_here(*make_thread_group(), topology), ElementsAre(0, 1, 2, 3, 4, 5));
}

// Two machines with two workers each, and a third with two servers, or with one.
TEST(ProcessGroupTest, ServersDoNotCountAsNeighboursOfWorkers) {
  EXPECT_EQ(per_machine({.hosts = {}, .machines = {0, 0, 2, 2, 4, 4}, .per_machine = 2}, 4), 2U);
  EXPECT_EQ(per_machine({.hosts = {}, .machines = {0, 0, 2, 2, 4}, .per_machine = 1}, 4), 2U);
  EXPECT_EQ(per_machine({.hosts = {}, .machines = {0, 0, 0, 3}, .per_machine = 1}, 2), 2U);
  EXPECT_EQ(per_machine({.hosts = {}, .machines = {0, 0, 0, 0}, .per_machine = 4}, 3), 4U);
}

TEST(ProcessGroupTest, ServersOfTheirOwnGetTheirShards) {
  Job job;
  job.layers = lay_out({"a", "b", "c"}, {2, 3, 1});
  job.topology = Topology(1, 1, 2);
  job.strategy.partition = Partition::kLayer;
  job.here = HostId(0);
  const Assembly assembly = assemble(job);
  std::vector<std::unique_ptr<Learner>> learners;
  learners.push_back(std::make_unique<IdleLearner>(job.layers));
  const auto parameters = learners.front()->parameters();
  std::iota(parameters.begin(), parameters.end(), 1.0F);
  LedGroup group({kAlike, kAlike});
  const TrainingState state = state_of(group, assembly, learners, {});
  ASSERT_EQ(group.scattered().size(), 3U);
  EXPECT_EQ(group.scattered()[0], "");
  const ZeroedBuffer first = shards_from(group.scattered()[1], assembly, HostId(1));
  EXPECT_THAT(first.values(), ElementsAre(1, 2, 0, 0, 0, 6));
  const ZeroedBuffer other = shards_from(group.scattered()[2], assembly, HostId(2));
  EXPECT_THAT(other.values(), ElementsAre(0, 0, 3, 4, 5, 0));
  EXPECT_THROW(shards_from("short", assembly, HostId(1)), std::runtime_error);
}

TEST(ProcessGroupTest, AnOutlineSurvivesTheWay) {
  const Outline outline{
      lay_out({"conv 1", "fc\n2"}, {10, 0}),
      {.workers = 3, .batch = 8, .iterations = 70, .per_epoch = 7, .samples_per_epoch = 168}};
  const Outline copy = outline_from(to_text(outline));
  ASSERT_EQ(copy.layers.size(), 2U);
  EXPECT_EQ(copy.layers[1].name, "fc\n2");
  EXPECT_EQ(copy.layers[1].range, (Range{10, 10}));
  EXPECT_EQ(copy.extent.workers, 3U);
  EXPECT_EQ(copy.extent.batch, 8);
  EXPECT_EQ(copy.extent.iterations, 70);
  EXPECT_EQ(copy.extent.per_epoch, 7);
  EXPECT_EQ(copy.extent.samples_per_epoch, 168);
  EXPECT_ANY_THROW(outline_from("{}"));
}

TEST(ProcessGroupTest, TheLoadersOfAllProcessesAreAddedUp) {
  const std::string of_other = "[5, 4, 3000000000000, 2000000000000]";
  const auto loading = loading_of(std::vector{text_of(LoadingTally()), of_other, of_other});
  EXPECT_EQ(loading.at("batches"), 10);
  EXPECT_EQ(loading.at("batches_ahead"), 8);
  EXPECT_EQ(loading.at("loading_s"), 6);
  EXPECT_EQ(loading.at("waited_s"), 4);
}

TEST(ProcessGroupTest, ThreadsHaveNoNetwork) {
  Job job;
  const Bytes credit = job.strategy.credit;
  const NetworkFacts facts = make_thread_group()->tune(job, {});
  EXPECT_FALSE(facts.link || facts.long_messages);
  EXPECT_EQ(job.strategy.credit, credit);
}

}  // namespace
}  // namespace sluice
