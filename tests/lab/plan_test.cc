#include "lab/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace sluice::lab {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string text(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

// The steps on one host or on the head, as text.
std::vector<std::string> steps_at(const Spec& spec, std::optional<std::size_t> host) {
  std::vector<std::string> texts;
  for (const Step& step : network_steps(spec)) {
    if (step.host == host) {
      texts.push_back(text(step.words));
    }
  }
  return texts;
}

std::string value_behind(const Words& words, const std::string& key) {
  const auto found = std::ranges::find(words, key);
  return found == words.end() ? "" : *(found + 1);
}

TEST(LabRateTest, ReadsRates) {
  EXPECT_EQ(*parse_rate("1gbit"), Rate(1'000'000'000));
  EXPECT_EQ(*parse_rate("2.5mbit"), Rate(2'500'000));
  EXPECT_EQ(*parse_rate("64kbit"), Rate(64'000));
  EXPECT_EQ(*parse_rate("none"), Rate());
}

TEST(LabRateTest, RefusesWhatIsNone) {
  for (const char* bad : {"", "1", "gbit", "1Gbit", "1gbit ", " 1gbit", "-1gbit", "0gbit",
                          "nangbit", "infgbit", "1e9gbit", "1bit", "1gbits"}) {
    const auto rate = parse_rate(bad);
    ASSERT_FALSE(rate) << bad;
    EXPECT_THAT(rate.error().message(), StartsWith(fmt::format("is \"{}\", expected a rate", bad)));
  }
}

TEST(LabRateTest, SomeHostsMayDiffer) {
  EXPECT_THAT(*parse_rates(3, "1mbit", ""), ElementsAre(1'000'000, 1'000'000, 1'000'000));
  EXPECT_THAT(*parse_rates(3, "1mbit", "2=none,0=3mbit"),
              ElementsAre(3'000'000, 1'000'000, std::nullopt));
}

TEST(LabRateTest, NamesTheFlagAndTheEntry) {
  EXPECT_THAT(parse_rates(3, "fast", "").error().message(), StartsWith("--rate: is \"fast\""));
  for (const char* bad : {"3=1gbit", "1gbit", "x=1gbit", "1x=1gbit", "-1=1gbit", "=1gbit"}) {
    const auto rates = parse_rates(3, "1gbit", bad);
    ASSERT_FALSE(rates) << bad;
    EXPECT_THAT(rates.error().message(), StartsWith(fmt::format("--rate-of: \"{}\"", bad)));
    EXPECT_THAT(rates.error().message(), HasSubstr("from 0 to 2"));
  }
  EXPECT_THAT(parse_rates(3, "1gbit", "1=fast").error().message(),
              StartsWith("--rate-of: host 1: is \"fast\""));
}

Cluster cluster_of(const std::string& toml) { return *parse_cluster(toml, "test"); }

TEST(LabPlanTest, HasTheHostsOfACluster) {
  const auto spec = spec_of(cluster_of(
      "hosts = 3\nbandwidth_gbps = 1\nlatency_us = 50\n[[host]]\nindex = 1\nbandwidth_gbps = "
      "0.5\n[[host]]\nindex = 2\nlatency_us = 550\n"));
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->workers_per_host, 1U);
  EXPECT_THAT(spec->rates, ElementsAre(1'000'000'000, 500'000'000, 1'000'000'000));
  EXPECT_THAT(spec->delays, ElementsAre(Duration{0}, Duration{0}, from_us(500)));
  EXPECT_THAT(steps_at(*spec, 2),
              Contains("tc qdisc add dev eth0 parent 1:1 handle 10: netem delay 500us limit "
                       "100000"));
  EXPECT_THAT(steps_at(*spec, {}), Contains(HasSubstr("dev port2 parent 1:1 handle 10: netem")));
  EXPECT_THAT(steps_at(*spec, 1), Not(Contains(HasSubstr("netem"))));
}

TEST(LabPlanTest, HasTheWorkersOfACluster) {
  const auto spec = spec_of(cluster_of("hosts = 3\nworkers_per_host = 2\nbandwidth_gbps = 1\n"));
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->workers_per_host, 2U);
}

TEST(LabPlanTest, SaysWhatItCannotEmulate) {
  for (const auto& [toml, key] :
       {std::pair{"[racks]\nhosts = 2\nuplink_gbps = 1\n", "[racks]: a lab cannot"},
        std::pair{"hosts_per_nic = 2\n", "hosts_per_nic: a lab cannot"},
        std::pair{"[allreduce]\nstartup_us = 1\nns_per_byte = 1\n", "[allreduce]: a lab cannot"}}) {
    const auto parsed =
        parse_cluster(std::string("hosts = 4\nbandwidth_gbps = 1\n") + toml, "test");
    ASSERT_TRUE(parsed) << parsed.error().message();
    const auto spec = spec_of(*parsed);
    ASSERT_FALSE(spec);
    EXPECT_THAT(spec.error().message(), StartsWith(key));
  }
}

TEST(LabPlanTest, BothEndsOfALinkAreLimited) {
  const Spec spec{{Rate(1'000'000'000), Rate(), Rate(500'000'000)}, 1, {"true"}};
  const auto limits = [&](std::optional<std::size_t> place) {
    auto steps = steps_at(spec, place);
    std::erase_if(steps, [](const std::string& step) { return !step.starts_with("tc "); });
    return steps;
  };
  EXPECT_THAT(
      limits({}),
      ElementsAre(StartsWith("tc qdisc add dev port0 root handle 1: tbf rate 1000000000bit"),
                  StartsWith("tc qdisc add dev port2 root handle 1: tbf rate 500000000bit")));
  EXPECT_THAT(
      limits(0),
      ElementsAre(StartsWith("tc qdisc add dev eth0 root handle 1: tbf rate 1000000000bit")));
  EXPECT_THAT(limits(1), ElementsAre());
  EXPECT_THAT(
      limits(2),
      ElementsAre(StartsWith("tc qdisc add dev eth0 root handle 1: tbf rate 500000000bit")));
}

TEST(LabPlanTest, EveryHostHasAnAddressThatAllKnow) {
  const Spec spec{std::vector<Rate>(kMaxHosts), 1, {"true"}};
  const std::string known = "\n" + hosts_file(kMaxHosts);
  std::set<std::string> addresses;
  const std::string add = "ip address add ";
  for (const Step& step : network_steps(spec)) {
    const std::string words = text(step.words);
    if (step.host && words.starts_with(add)) {
      const std::string address = words.substr(add.size(), words.find('/') - add.size());
      EXPECT_TRUE(addresses.insert(address).second) << address;
      EXPECT_THAT(known, HasSubstr("\n" + address + " " + host_name(*step.host) + "\n"));
    }
  }
  EXPECT_EQ(addresses.size(), kMaxHosts);
  EXPECT_THAT(steps_at(spec, {}), Not(Contains(HasSubstr(*addresses.rbegin() + "/24 dev switch"))));
}

TEST(LabPlanTest, LinksComeBeforeWhatIsSetOnThem) {
  const Spec spec{std::vector<Rate>(2, Rate(1'000'000)), 1, {"true"}};
  std::set<std::size_t> joined;
  for (const Step& step : network_steps(spec)) {
    for (std::size_t h = 0; h < 2; ++h) {
      if (text(step.words).starts_with("ip link add " + port_name(h))) {
        joined.insert(h);
      } else if (step.host == h || testing::Matches(Contains(port_name(h)))(step.words)) {
        EXPECT_TRUE(joined.contains(h)) << text(step.words);
      }
    }
  }
  EXPECT_EQ(joined.size(), 2U);
}

TEST(LabPlanTest, TheCommandStandsLastAndUntouched) {
  const Spec spec{std::vector<Rate>(3), 2, {"sh", "-c", "echo 'a b'", "-np"}};
  for (const Launcher launcher : {Launcher::kOrte, Launcher::kPrrte}) {
    const Words words = launch_words(spec, launcher);
    ASSERT_GT(words.size(), 6U);
    EXPECT_EQ(words.front(), "mpirun");
    EXPECT_TRUE(std::equal(spec.command.rbegin(), spec.command.rend(), words.rbegin()));
    EXPECT_EQ(value_behind(words, "-np"), "6");
    EXPECT_EQ(value_behind(words, "--host"), "h0:2,h1:2,h2:2");
  }
}

TEST(LabPlanTest, TheVersionTellsTheLauncher) {
  EXPECT_EQ(*parse_launcher("mpirun (Open MPI) 4.1.4\n\nReport bugs to ..."), Launcher::kOrte);
  EXPECT_EQ(*parse_launcher("mpirun (Open MPI) 5.0.7\n"), Launcher::kPrrte);
  EXPECT_EQ(*parse_launcher("mpirun (Open MPI) 10.0.0rc1\n"), Launcher::kPrrte);
  for (const char* other :
       {"HYDRA build details:\n    Version: 4.0.2\n", "", "mpirun (Open MPI) x"}) {
    EXPECT_THAT(parse_launcher(other).error().message(),
                StartsWith("mpirun is not Open MPI's, since its version is \""))
        << other;
  }
}

TEST(LabPlanTest, EveryLauncherIsToldByItsOwnNames) {
  const Spec spec{std::vector<Rate>(2), 1, {"true"}};
  const Words orte = launch_words(spec, Launcher::kOrte);
  EXPECT_EQ(value_behind(orte, "plm_rsh_agent"), "sh " + agent_path());
  EXPECT_EQ(value_behind(orte, "orte_tmpdir_base"), kShelf);
  EXPECT_THAT(orte, Not(Contains("--prtemca")));
  const Words prrte = launch_words(spec, Launcher::kPrrte);
  EXPECT_EQ(value_behind(prrte, "plm_ssh_agent"), "sh " + agent_path());
  EXPECT_EQ(value_behind(prrte, "prte_tmpdir_base"), kShelf);
  EXPECT_EQ(value_behind(prrte, "odls_base_max_threads"), "0")
      << "it would not see the end of a short command";
  for (auto word = std::ranges::find(prrte, "--mca"); word != prrte.end();
       word = std::find(word + 1, prrte.end(), "--mca")) {
    EXPECT_THAT(*(word + 1), testing::ContainsRegex("^(pml|btl|btl_tcp_.*|mpi_.*)$"))
        << "its launcher would not see it";
  }
}

TEST(LabPlanTest, OnTheHeadTheEnvironmentTellsWhatFlagsTellElsewhere) {
  Spec spec{std::vector<Rate>(2), 3, {"sluice", "launch"}};
  for (const auto& [launcher, prefix] :
       {std::pair{Launcher::kOrte, "OMPI_MCA_"}, std::pair{Launcher::kPrrte, "PRTE_MCA_"}}) {
    spec.on_head = false;
    const Words flags = launch_words(spec, launcher);
    spec.on_head = true;
    EXPECT_EQ(launch_words(spec, launcher), spec.command);
    std::map<std::string, std::string> variables;
    for (const auto& [key, value] : launch_environment(spec, launcher)) {
      EXPECT_TRUE(variables.emplace(key, value).second) << key;
    }
    for (auto word = flags.begin(); word != flags.end(); ++word) {
      if (*word == "--mca" || *word == "--prtemca") {
        const bool of_launcher = *word == "--prtemca" || launcher == Launcher::kOrte;
        EXPECT_EQ(variables[(of_launcher ? prefix : "OMPI_MCA_") + *(word + 1)], *(word + 2));
      }
    }
    EXPECT_EQ(std::ranges::count(variables, slots_path(), [](const auto& v) { return v.second; }),
              1);
  }
  EXPECT_EQ(slots_file(spec), "h0 slots=3\nh1 slots=3\n");
}

TEST(LabPlanTest, TheSlowestLinkTellsHowLongFragmentsAre) {
  const auto fragment = [](std::vector<Rate> rates) {
    return std::stoll(value_behind(launch_words({std::move(rates), 1, {"true"}}, Launcher::kOrte),
                                   "btl_tcp_rdma_pipeline_frag_size"));
  };
  EXPECT_LT(fragment({Rate(1'000'000'000), Rate()}), fragment({Rate(7'000'000'000), Rate()}));
  EXPECT_LT(fragment({Rate(7'000'000'000), Rate()}), fragment({Rate(), Rate()}));
  EXPECT_EQ(fragment({Rate(25'000'000'000), Rate()}), fragment({Rate(), Rate()}));
}

TEST(LabPlanTest, WorkersOfOneHostShareMemory) {
  const auto transports = [](std::size_t per_host) {
    return value_behind(launch_words({std::vector<Rate>(2), per_host, {"true"}}, Launcher::kOrte),
                        "btl");
  };
  EXPECT_EQ(transports(1), "self,tcp");
  EXPECT_EQ(transports(2), "self,vader,tcp");
}

}  // namespace
}  // namespace sluice::lab
