// Runs the program itself with real hosts, which needs root; skipped if something is missing.

#include "lab/lab.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "lab/process.h"
#include "support/skip.h"
#include "support/temporary_folder.h"

namespace sluice::lab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// Processes whose command line has this text.
std::size_t processes_with(const std::string& text) {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ostringstream line;
    line << std::ifstream(entry.path() / "cmdline").rdbuf();
    found += line.str().find(text) != std::string::npos ? 1U : 0U;
  }
  return found;
}

bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// One `sluice lab`, in its own folder.
class RunningLab {
 public:
  // It ignores the signals in `ignored`, as under nohup.
  RunningLab(const Words& settings, const std::string& script,
             const std::vector<int>& ignored = {}) {
    Words words{SLUICE_BINARY, "lab", "--run", "run"};
    words.insert(words.end(), settings.begin(), settings.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    fs::permissions(folder_.path(), fs::perms::all);  // whoever runs the script
    pid_ = fork();
    if (pid_ == 0) {
      setenv("UCX_DEBUG_SIGNO", "0", 1);  // UCX, which some MPIs load, would take SIGHUP
      for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        std::signal(number, std::ranges::count(ignored, number) > 0 ? SIG_IGN : SIG_DFL);
      }
      (void)!chdir(folder_.path().c_str());
      dup2(open("out.txt", O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
      dup2(open("err.txt", O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
      (void)become(words);
      _exit(127);
    }
  }
  ~RunningLab() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
  }
  RunningLab(const RunningLab&) = delete;
  RunningLab& operator=(const RunningLab&) = delete;

  void signal(int number) const { kill(pid_, number); }
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return exit_code(status);
  }
  bool has(const std::string& file) const { return std::filesystem::exists(folder_.path() / file); }
  std::string out() const { return folder_.read("out.txt"); }
  std::string err() const { return folder_.read("err.txt"); }
  std::string read(const std::string& file) const { return folder_.read(file); }

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
};

class LabTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto lacks = missing(); !lacks.empty()) {
      SKIP_FOR_LACK(fmt::format("this machine lacks {}", fmt::join(lacks, ", and ")));
    }
  }

  // A script that creates a file when it runs and then does not end.
  std::string endless() const { return "touch up-$(hostname); exec sleep " + marker_; }
  // In the command line of every process of an endless lab.
  const std::string& marker() const { return marker_; }
  static bool both_are_up(const RunningLab& lab) {
    return comes_true([&] { return lab.has("up-h0") && lab.has("up-h1"); });
  }

 private:
  std::string marker_ = fmt::format("98765.{}", getpid());
};

TEST_F(LabTest, HostsHaveNamesAndLimitedLinks) {
  RunningLab lab({"--hosts", "2", "--rate", "300mbit", "--rate-of", "1=100mbit"},
                 "echo $(hostname) $(tc qdisc show dev eth0)");
  ASSERT_EQ(lab.wait(), 0) << lab.err();
  EXPECT_THAT(lab.out(), HasSubstr("h0 qdisc tbf"));
  EXPECT_THAT(lab.out(), MatchesRegex("(.|\n)*h0 [^\n]* rate 300Mbit (.|\n)*"));
  EXPECT_THAT(lab.out(), MatchesRegex("(.|\n)*h1 [^\n]* rate 100Mbit (.|\n)*"));
  EXPECT_THAT(lab.err(), HasSubstr("run/utilisation.csv"));
}

TEST_F(LabTest, WhatPassesTheLinksIsCounted) {
  RunningLab lab({"--hosts", "2"}, R"(perl -MIO::Socket::INET -e '
      if (`hostname` eq "h0\n") {
        $server = IO::Socket::INET->new(Listen => 1, LocalPort => 5000);
        $peer = $server->accept;
        while (read($peer, $part, 65536)) { $bytes += length $part }
        print "$bytes from ", $peer->peerhost, "\n";
      } else {
        for (1 .. 3000) {
          last if $peer = IO::Socket::INET->new("h0:5000");
          select undef, undef, undef, 0.01;
        }
        print $peer "x" x 3000000;
      }')");
  ASSERT_EQ(lab.wait(), 0) << lab.err();
  EXPECT_EQ(lab.out(), "3000000 from 10.77.0.2\n");
  const auto summary = nlohmann::json::parse(lab.read("run/summary.json"));
  EXPECT_GT(summary.at("hosts").at(0).at("rx_bytes"), 3'000'000);
  EXPECT_LT(summary.at("hosts").at(0).at("tx_bytes"), 1'000'000);
  EXPECT_GT(summary.at("hosts").at(1).at("tx_bytes"), 3'000'000);

  std::istringstream rows(lab.read("run/utilisation.csv"));
  std::string row;
  std::getline(rows, row);
  EXPECT_EQ(row + "\n", kTrafficHeader);
  std::size_t count = 0;
  for (double latest = 0; std::getline(rows, row); ++count) {
    EXPECT_THAT(row, MatchesRegex("[0-9]+\\.[0-9]{6},[01],[0-9]+,[0-9]+"));
    EXPECT_GE(std::stod(row), latest);
    latest = std::stod(row);
  }
  EXPECT_GE(count, 4U);
}

TEST_F(LabTest, WorkersFillOneHostAfterTheOther) {
  const TemporaryFolder folder;
  const auto cluster = [&](int workers) {
    const std::string file = fmt::format("{}.toml", workers);
    folder.write(file,
                 fmt::format("hosts = 2\nworkers_per_host = {}\nbandwidth_gbps = 1\n", workers));
    return (folder.path() / file).string();
  };
  for (const Words& settings :
       {Words{"--hosts", "2", "--workers-per-host", "2"}, Words{"--cluster", cluster(2)},
        Words{"--cluster", cluster(1), "--workers-per-host", "2"}}) {
    RunningLab lab(settings, "echo $OMPI_COMM_WORLD_RANK on $(hostname)");
    ASSERT_EQ(lab.wait(), 0) << lab.err();
    for (const char* line : {"0 on h0\n", "1 on h0\n", "2 on h1\n", "3 on h1\n"}) {
      EXPECT_THAT(lab.out(), HasSubstr(line));
    }
  }
}

TEST_F(LabTest, OnTheHeadLaunchReachesTheHosts) {
  RunningLab lab({"--hosts", "2", "--on", "head"},
                 "hostname; sluice launch -n 2 -- sh -c 'echo $OMPI_COMM_WORLD_RANK on "
                 "$(hostname)'");
  ASSERT_EQ(lab.wait(), 0) << lab.err();
  for (const char* line : {"head\n", "0 on h0\n", "1 on h1\n"}) {
    EXPECT_THAT(lab.out(), HasSubstr(line));
  }
}

// The agent stands in for a network: once there is a file "gone", h1 does not answer.
TEST_F(LabTest, AJobThatIsStartedAgainLeavesAHostThatIsGone) {
  RunningLab lab({"--hosts", "3", "--on", "head"}, R"(
      printf '%s\n' '[ $1 = h1 ] && [ -e gone ] && exit 255' 'exec sh /dev/shm/agent "$@"' > agent
      export OMPI_MCA_plm_rsh_agent="sh $PWD/agent" PRTE_MCA_plm_ssh_agent="sh $PWD/agent"
      exec sluice launch -n 3 --max-restarts 1 -- sh -c '
        [ $SLUICE_RESTART = 1 ] && exec echo $OMPI_COMM_WORLD_RANK on $(hostname)
        [ $(hostname) = h1 ] || exec sleep 60
        touch gone
        exit 3')");
  ASSERT_EQ(lab.wait(), 0) << lab.err();
  EXPECT_THAT(lab.err(), HasSubstr("launch: h1 does not answer; other hosts run the processes"));
  for (const char* line : {"0 on h0\n", "1 on h0\n", "2 on h2\n"}) {
    EXPECT_THAT(lab.out(), HasSubstr(line));
  }
}

TEST_F(LabTest, ACommandHasTheRightsOfItsUserAndNoMore) {
  const std::string script =
      "echo $(hostname) $(id -un) $(grep CapPrm /proc/self/status); touch by-$(hostname); "
      "ip link set eth0 down && echo may change the network; true";
  const auto expect_rights = [](RunningLab& lab) {
    ASSERT_EQ(lab.wait(), 0) << lab.err();
    for (const char* line :
         {"h0 nobody CapPrm: 0000000000000000\n", "h1 nobody CapPrm: 0000000000000000\n"}) {
      EXPECT_THAT(lab.out(), HasSubstr(line));
    }
    EXPECT_THAT(lab.out(), Not(HasSubstr("may change")));
    EXPECT_TRUE(lab.has("by-h0"));
  };
  RunningLab on_hosts({"--hosts", "2", "--user", "nobody"}, script);
  expect_rights(on_hosts);
  for (const char* transport : {"mpi", "tcp"}) {
    RunningLab on_head(
        {"--hosts", "2", "--user", "nobody", "--on", "head"},
        fmt::format("exec sluice launch --transport {} -n 2 -- sh -c '{}'", transport, script));
    expect_rights(on_head);
  }
}

TEST_F(LabTest, AProcessOfAUserEntersHostsAndNothingElse) {
  RunningLab lab({"--hosts", "2", "--user", "nobody", "--on", "head"},
                 "/dev/shm/nsenter --net=/dev/shm/h1/net --uts=/dev/shm/h1/uts "
                 "sh -c 'hostname; ip link set eth0 down'; "
                 "/dev/shm/nsenter --user=/proc/1/ns/user true && echo is root; "
                 "/dev/shm/nsenter -S 0 id -u; echo done");
  ASSERT_EQ(lab.wait(), 0) << lab.err();
  EXPECT_EQ(lab.out(), "h1\ndone\n");
}

TEST_F(LabTest, AUserMustExist) {
  RunningLab lab({"--hosts", "2", "--user", "no-such-user"}, "true");
  EXPECT_EQ(lab.wait(), 2);
  EXPECT_THAT(lab.err(),
              HasSubstr("--user: is \"no-such-user\", and this machine has no such user"));
}

TEST_F(LabTest, SluiceIsThisVeryProgram) {
  RunningLab lab({"--hosts", "1"}, "sluice --version");
  EXPECT_EQ(lab.wait(), 0) << lab.err();
  EXPECT_THAT(lab.out(), MatchesRegex("sluice [0-9.]+\n"));
}

TEST_F(LabTest, TheLastHostsMayBeServers) {
  RunningLab lab({"--hosts", "3"},
                 "exec sluice train --model replay:p4000/resnet50 --param-scale 0.001 "
                 "--time-scale 0.001 --iterations 3 --servers 1 --json --run trained");
  ASSERT_EQ(lab.wait(), 0) << lab.err();
  EXPECT_THAT(lab.err(), HasSubstr("3 processes on h0, h1, h2; servers from rank 2 on"));
  EXPECT_THAT(lab.out(), HasSubstr("\"workers\": 2,"));
}

TEST_F(LabTest, TheExitCodeIsTheCommands) {
  RunningLab lab({"--hosts", "2"}, "[ $(hostname) = h0 ] || exit 7");
  EXPECT_EQ(lab.wait(), 7);
}

TEST_F(LabTest, SeveralStandAtOnce) {
  RunningLab one({"--hosts", "2"}, endless());
  ASSERT_TRUE(both_are_up(one));
  RunningLab two({"--hosts", "2"}, "hostname");
  EXPECT_EQ(two.wait(), 0) << two.err();
  EXPECT_THAT(two.out(), HasSubstr("h1"));
  EXPECT_GE(processes_with(marker()), 2U);
}

TEST_F(LabTest, NothingIsLeftAfterAnInterrupt) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    RunningLab lab({"--hosts", "2"}, endless());
    ASSERT_TRUE(both_are_up(lab));
    ASSERT_GE(processes_with(marker()), 2U);
    lab.signal(number);
    EXPECT_EQ(lab.wait(), 128 + number);
    EXPECT_EQ(processes_with(marker()), 0U);
    EXPECT_TRUE(lab.has("run/summary.json"));
  }
}

TEST_F(LabTest, WhatIsIgnoredStaysIgnored) {
  RunningLab lab({"--hosts", "2"}, endless(), {SIGHUP, SIGINT});
  ASSERT_TRUE(both_are_up(lab));
  lab.signal(SIGHUP);
  lab.signal(SIGINT);
  lab.signal(SIGTERM);
  EXPECT_EQ(lab.wait(), 128 + SIGTERM) << "it reports the first signal that it does not ignore";
}

TEST_F(LabTest, AProcessRunsOneAfterAnother) {
  const auto children = [] { return fs::read_symlink("/proc/self/ns/pid_for_children"); };
  const fs::path before = children();
  for (const int code : {3, 0}) {
    std::ostringstream samples;
    const auto outcome =
        run({std::vector<Rate>(2), 1, {"sh", "-c", fmt::format("exit {}", code)}}, samples);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_EQ(outcome->exit_code, code);
    EXPECT_EQ(children(), before);
  }
}

TEST_F(LabTest, NothingIsLeftAfterAnInterruptOfACommandThatDoesNotCare) {
  RunningLab lab({"--hosts", "2"},
                 "trap '' INT TERM; touch up-$(hostname); while :; do sleep 0.1; "
                 "done # " +
                     marker());
  ASSERT_TRUE(both_are_up(lab));
  lab.signal(SIGINT);
  lab.signal(SIGINT);
  EXPECT_EQ(lab.wait(), 128 + SIGINT);
  EXPECT_EQ(processes_with(marker()), 0U);
}

TEST_F(LabTest, NothingIsLeftAfterAKill) {
  RunningLab lab({"--hosts", "2"}, endless());
  ASSERT_TRUE(both_are_up(lab));
  lab.signal(SIGKILL);
  lab.wait();
  EXPECT_TRUE(comes_true([&] { return processes_with(marker()) == 0; }));
}

TEST_F(LabTest, TheMachineItselfStaysAsItWas) {
  const auto read = [](const char* path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  const std::string mounts = read("/proc/mounts");
  RunningLab lab({"--hosts", "2"}, endless());
  ASSERT_TRUE(both_are_up(lab));
  EXPECT_EQ(read("/proc/mounts"), mounts);
  EXPECT_THAT(read("/proc/net/dev"), Not(HasSubstr("port0")));
}

}  // namespace
}  // namespace sluice::lab
