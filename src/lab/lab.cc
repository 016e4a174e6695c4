#include "lab/lab.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include "lab/head.h"
#include "lab/interrupts.h"
#include "lab/process.h"

namespace sluice::lab {
namespace {

using std::chrono::ceil;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kInterval(10);
constexpr std::chrono::seconds kPatience(5);  // for a command to end after a signal

Result<void> make_namespaces() {
  constexpr int kAll = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS;
  return unshare(kAll) == 0 ? Result<void>{} : system_error("unshare");
}

// Runs `work` on this thread, whose new children start in a PID namespace of their own.
Result<void> with_new_pids(const std::function<Result<void>()>& work) {
  const int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
  if (own < 0) {
    return system_error("/proc/self/ns/pid");
  }
  if (unshare(CLONE_NEWPID) != 0) {
    const Error error = system_error("a PID namespace cannot be created");
    close(own);
    return error;
  }
  auto done = work();
  const bool back = setns(own, CLONE_NEWPID) == 0;
  close(own);
  return back ? done : system_error("the PID namespace cannot be left");
}

// Lives outside the lab and outlives it.
class Owner {
 public:
  Owner(const Spec& spec, Launcher launcher, std::ostream& samples)
      : spec_(spec), launcher_(launcher), samples_(samples) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner();

  Result<Outcome> run();

 private:
  Result<void> start_head();
  // Returns when the head has exited.
  void watch();
  // Reads what the head has written; false when it has exited.
  bool listen();
  void interrupt(int signal);
  void sample();
  // Takes the text of the head's /proc/net/dev.
  void count(const std::string& text);
  // Waits for the head to exit; returns its exit code.
  int end();
  bool standing() const { return heard_.starts_with(kStanding); }

  const Spec& spec_;
  const Launcher launcher_;
  std::ostream& samples_;
  Interrupts interrupts_;
  pid_t head_ = -1;
  int report_ = -1;
  std::string heard_;  // from the head
  int interrupted_by_ = 0;
  std::optional<steady_clock::time_point> killed_at_;
  steady_clock::time_point start_;
  steady_clock::time_point next_sample_;
  std::vector<Traffic> traffic_;
};

Owner::~Owner() {
  if (head_ > 0) {
    kill(head_, SIGKILL);
    end();
  }
}

Result<Outcome> Owner::run() {
  samples_ << kTrafficHeader;
  if (auto started = start_head(); !started) {
    return started.error();
  }
  watch();
  const auto ran = std::chrono::duration_cast<Duration>(steady_clock::now() - start_);
  const int code = end();
  if (interrupted_by_ == 0 && !standing()) {
    return Error(heard_.empty() ? "the head process has died" : heard_);
  }
  if (standing()) {
    count(heard_.substr(1));  // with what has passed since the last sample
  }
  return Outcome{interrupted_by_ != 0 ? 128 + interrupted_by_ : code, ran, traffic_};
}

Result<void> Owner::start_head() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error("a pipe cannot be created");
  }
  report_ = ends[0];
  auto started = with_new_pids([&]() -> Result<void> {
    head_ = fork();
    if (head_ == 0) {
      live_as_head(spec_, launcher_, ends[1]);
    }
    return head_ < 0 ? system_error("the head cannot be started") : Result<void>{};
  });
  close(ends[1]);
  return started;
}

void Owner::watch() {
  for (;;) {
    std::array<pollfd, 2> sources{{{interrupts_.fd(), POLLIN, 0}, {report_, POLLIN, 0}}};
    const auto left = ceil<milliseconds>(next_sample_ - steady_clock::now()).count();
    poll(sources.data(), sources.size(), standing() ? static_cast<int>(std::max(left, 0L)) : -1);
    if (const int signal = interrupts_.take(); signal != 0) {
      interrupt(signal);
    }
    if (sources[1].revents != 0 && !listen()) {
      return;
    }
    if (killed_at_.has_value() && steady_clock::now() >= *killed_at_) {
      kill(head_, SIGKILL);
    }
    if (standing() && steady_clock::now() >= next_sample_) {
      sample();
    }
  }
}

bool Owner::listen() {
  std::array<char, 1024> part{};
  const ssize_t got = read(report_, part.data(), part.size());
  if (got <= 0) {
    return got < 0 && errno == EINTR;
  }
  if (heard_.empty()) {
    start_ = steady_clock::now();
    next_sample_ = start_;
  }
  heard_.append(part.data(), static_cast<std::size_t>(got));
  return true;
}

void Owner::interrupt(int signal) {
  const bool again = interrupted_by_ != 0;
  interrupted_by_ = again ? interrupted_by_ : signal;
  if (!standing() || again) {
    kill(head_, SIGKILL);
  } else {
    kill(head_, SIGTERM);
    killed_at_ = steady_clock::now() + kPatience;
  }
}

void Owner::count(const std::string& text) {
  // Nothing can be read once the head has died.
  if (!text.empty()) {
    const auto now = steady_clock::now();
    traffic_ = parse_traffic(text, spec_.rates.size());
    write_traffic(samples_, std::chrono::duration_cast<Time>(now - start_), traffic_);
  }
}

void Owner::sample() {
  std::ifstream file(fmt::format("/proc/{}/net/dev", head_));
  std::ostringstream text;
  text << file.rdbuf();
  count(text.str());
  while (next_sample_ <= steady_clock::now()) {
    next_sample_ += kInterval;
  }
}

int Owner::end() {
  int status = 0;
  while (waitpid(head_, &status, 0) < 0 && errno == EINTR) {
  }
  close(report_);
  head_ = -1;
  return exit_code(status);
}

}  // namespace

std::vector<std::string> missing() {
  std::vector<std::string> lacks;
  if (geteuid() != 0) {
    lacks.emplace_back("root privileges (run it with sudo)");
  } else if (!in_child(make_namespaces)) {
    lacks.emplace_back("the privilege to create namespaces (a container must be privileged)");
  }
  if (!find_program("ip") || !find_program("tc")) {
    lacks.emplace_back(
        "ip and tc on the PATH (apt-get install iproute2; they may be in /usr/sbin)");
  }
  if (!find_program("nsenter")) {
    lacks.emplace_back("nsenter on the PATH (apt-get install util-linux)");
  }
  if (!find_program("mpirun")) {
    lacks.emplace_back("mpirun on the PATH (apt-get install openmpi-bin)");
  }
  return lacks;
}

Result<Outcome> run(const Spec& spec, std::ostream& samples) {
  const auto version = output_of({"mpirun", "--version"});
  if (!version) {
    return version.error().within("mpirun --version");
  }
  const auto launcher = parse_launcher(*version);
  if (!launcher) {
    return launcher.error();
  }
  return Owner(spec, *launcher, samples).run();
}

}  // namespace sluice::lab
