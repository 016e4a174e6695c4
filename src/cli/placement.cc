#include "cli/placement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/units.h"
#include "drivers/realtime/clock.h"
#include "lab/process.h"

namespace sluice::cli {
namespace {

const Duration kToAnswer = from_us(10e6);
constexpr useconds_t kBetweenLooks = 20'000;

// Has the agent do nothing there.
pid_t knock_at(const std::string& host, const lab::Words& agent) {
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      dup2(nothing, stream);
    }
    lab::Words words = agent;
    words.insert(words.end(), {host, "true"});
    static_cast<void>(lab::become(words));
    _exit(EXIT_FAILURE);
  }
  setpgid(pid, pid);
  return pid;
}

}  // namespace

std::set<std::string> unreachable(const Placement& placement) {
  std::map<std::string, pid_t> asked;
  for (const std::string& host : placement.hosts) {
    if (!host.empty() && !asked.contains(host)) {
      asked.emplace(host, knock_at(host, placement.agent));
    }
  }
  std::set<std::string> silent;
  const Clock clock;
  while (!asked.empty()) {
    const bool late = clock.now() > Time(kToAnswer);
    for (auto at = asked.begin(); at != asked.end();) {
      const auto& [host, pid] = *at;
      if (late && pid > 0) {
        kill(-pid, SIGKILL);
      }
      int status = 0;
      const bool ended = pid < 0 || waitpid(pid, &status, late ? 0 : WNOHANG) == pid;
      if (ended && (pid < 0 || status != 0)) {
        silent.insert(host);
      }
      at = ended ? asked.erase(at) : std::next(at);
    }
    usleep(asked.empty() ? 0 : kBetweenLooks);
  }
  return silent;
}

std::vector<std::string> moved_from(const std::set<std::string>& gone,
                                    std::vector<std::string> hosts) {
  std::vector<std::pair<std::string, std::size_t>> left;  // in their order, with their processes
  for (const std::string& host : hosts) {
    const auto known = std::ranges::find(left, host, &std::pair<std::string, std::size_t>::first);
    if (known != left.end()) {
      ++known->second;
    } else if (!gone.contains(host)) {
      left.emplace_back(host, 1);
    }
  }
  if (left.empty()) {
    return hosts;
  }
  for (std::string& host : hosts) {
    if (gone.contains(host)) {
      auto& [name, processes] =
          *std::ranges::min_element(left, {}, &std::pair<std::string, std::size_t>::second);
      host = name;
      ++processes;
    }
  }
  return hosts;
}

std::optional<Placement> without_unreachable(const Placement& placement,
                                             const std::function<void(const std::string&)>& warn) {
  const std::set<std::string> gone = unreachable(placement);
  Placement others = placement;
  others.hosts = moved_from(gone, placement.hosts);
  if (others.hosts != placement.hosts) {
    warn(fmt::format("launch: {} {} not answer; other hosts run the processes from there",
                     fmt::join(gone, ", "), gone.size() == 1 ? "does" : "do"));
    return others;
  }
  if (!gone.empty()) {
    warn(fmt::format("launch: none of the hosts answers: {}", fmt::join(gone, ", ")));
  }
  return std::nullopt;
}

std::string hostfile_of(const std::vector<std::string>& hosts, bool mpich) {
  std::string text;
  for (auto at = hosts.begin(); at != hosts.end(); ++at) {
    if (std::find(hosts.begin(), at, *at) == at) {
      const std::string name = at->empty() ? "localhost" : *at;
      text +=
          fmt::format("{}{}{}\n", name, mpich ? ":" : " slots=", std::count(at, hosts.end(), *at));
    }
  }
  return text;
}

TemporaryFile::TemporaryFile(const std::string& text)
    : path_((std::filesystem::temp_directory_path() / "sluice-hosts-XXXXXX").string()) {
  const int file = mkstemp(path_.data());
  const ssize_t written = file < 0 ? -1 : ::write(file, text.data(), text.size());
  ::close(file);
  if (written != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error(path_ + ": cannot be written");
  }
}

TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }

}  // namespace sluice::cli
