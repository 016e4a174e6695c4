#include "cli/hub_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/text.h"
#include "cli/console.h"
#include "cli/restart_count.h"
#include "drivers/hub/hub.h"
#include "drivers/processes/launch.h"
#include "lab/interrupts.h"
#include "lab/process.h"

namespace sluice::cli {
namespace {

const Duration kHubTurn = from_us(2e4);
// For processes whose job cannot go on, to say why and to end; then they get a signal, and another
// one after the same time.
const Duration kToEnd = from_us(3e6);

std::string ending_text(int status) {
  return WIFSIGNALED(status) ? fmt::format("killed by signal {} ({})", WTERMSIG(status),
                                           strsignal(WTERMSIG(status)))
                             : fmt::format("exited with code {}", WEXITSTATUS(status));
}

// The processes of one job, from this end.
class HubRun {
 public:
  HubRun(const HubPlan& plan, Hub hub, std::int64_t restart)
      : plan_(plan),
        hub_(std::move(hub)),
        restart_(restart),
        hosts_(plan.place.hosts),
        children_(hosts_.size(),
                  {.restarts = {plan.rejoins, newest_checkpoint(plan.checkpoints)}}) {}

  Ending run();

 private:
  struct Child {
    pid_t pid = -1;
    std::optional<int> status = {};  // once it has ended
    bool lost = false;
    bool came = true;  // with the last start
    std::int64_t starts = 0;
    bool may_start = true;  // again
    RestartCount restarts;
  };

  Result<void> start(std::size_t rank);
  [[noreturn]] void become(std::size_t rank, int token) const;
  [[noreturn]] void become_remote(std::size_t rank, int token) const;
  std::vector<std::pair<const char*, std::string>> variables(std::size_t rank) const;

  bool is_running() const;
  void reap();
  bool reap(std::size_t rank);
  bool may_join(std::size_t rank) const;
  void start_again(std::size_t rank);
  void note(const std::vector<Hub::Happening>& happenings);
  void note_lost(const Hub::Happening& lost);
  void fail(int code, const std::string& why);
  void pass_on(int signal);
  void end_stragglers();
  void kill_all(int signal);
  std::string name_of(std::size_t rank) const {
    const std::string& host = hosts_[rank];
    return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} on {}", rank, host);
  }

  const HubPlan& plan_;
  Hub hub_;
  const std::int64_t restart_;
  std::vector<std::string> hosts_;  // by rank
  std::vector<Child> children_;     // by rank
  Ending ending_;
  const Clock clock_;
  std::optional<Time> ends_at_;  // with the next signal, if they have not ended by themselves
  int next_signal_ = SIGTERM;
};

Ending HubRun::run() {
  const lab::Interrupts interrupts;
  for (std::size_t r = 0; r < children_.size(); ++r) {
    if (const auto started = start(r); !started) {
      kill_all(SIGKILL);
      return {failed(started.error())};
    }
  }
  while (is_running()) {
    note(hub_.turn(kHubTurn));
    reap();
    if (const int signal = interrupts.take(); signal != 0) {
      ending_.signal = signal;
      pass_on(signal);
    }
    end_stragglers();
    for (std::size_t r = 0; r < children_.size(); ++r) {
      if (may_join(r)) {
        start_again(r);
      }
    }
  }
  const RoundTrips& trips = hub_.round_trips();
  spdlog::debug(
      "launch: {} heartbeats came back, half within {} ms, 99 % within {} ms, all "
      "within {} ms",
      trips.count(), trips.quantile_ms(0.5), trips.quantile_ms(0.99), trips.quantile_ms(1));
  return ending_;
}

bool HubRun::is_running() const {
  return std::ranges::any_of(children_, [](const Child& child) { return !child.status; });
}

std::vector<std::pair<const char*, std::string>> HubRun::variables(std::size_t rank) const {
  const Endpoint& at = hub_.address().endpoint;
  std::vector<std::pair<const char*, std::string>> all{
      {kHubVariable, fmt::format("{}:{}", at.address, at.port)},
      {kHubRankVariable, fmt::format("{}", rank)},
      {kHubSizeVariable, fmt::format("{}", children_.size())},
      {kRestartVariable, fmt::format("{}", restart_)}};
  if (const char* const earlier = std::getenv(kEarlierStartsVariable)) {
    all.emplace_back(kEarlierStartsVariable, earlier);
  }
  if (children_[rank].starts > 0) {
    all.emplace_back(kHubJoinVariable, "1");
  }
  return all;
}

// The token goes through a pipe to another host: the arguments of a program can be read by all.
Result<void> HubRun::start(std::size_t rank) {
  std::array<int, 2> token{};
  if (pipe2(token.data(), O_CLOEXEC) != 0) {
    return lab::system_error("launch: pipe");
  }
  const std::string line = hub_.address().token + "\n";
  [[maybe_unused]] const ssize_t written = ::write(token[1], line.data(), line.size());
  ::close(token[1]);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);  // a Ctrl-C comes to it once, from here
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    become(rank, token[0]);
  }
  ::close(token[0]);
  if (pid < 0) {
    return lab::system_error("launch: fork");
  }
  setpgid(pid, pid);
  children_[rank].pid = pid;
  ++children_[rank].starts;
  return {};
}

void HubRun::become(std::size_t rank, int token) const {
  if (!hosts_[rank].empty()) {
    become_remote(rank, token);
  }
  for (const auto& [key, value] : variables(rank)) {
    setenv(key, value.c_str(), 1);
  }
  setenv(kHubTokenVariable, hub_.address().token.c_str(), 1);
  if (rank > 0) {
    dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  }
  failed(lab::become(plan_.command).within("launch"));
  _exit(kNotFound);
}

void HubRun::become_remote(std::size_t rank, int token) const {
  dup2(token, STDIN_FILENO);
  std::string text = fmt::format("IFS= read -r {0}; export {0}; cd {1} && exec env",
                                 kHubTokenVariable, shell_word(std::filesystem::current_path()));
  for (const auto& [key, value] : variables(rank)) {
    text += fmt::format(" {}={}", key, shell_word(value));
  }
  for (const std::string& word : plan_.command) {
    text += " " + shell_word(word);
  }
  Words words = plan_.place.agent;
  words.push_back(hosts_[rank]);
  words.insert(words.end(), plan_.place.shell.begin(), plan_.place.shell.end());
  words.push_back(text + " </dev/null");
  failed(lab::become(words).within("launch"));
  _exit(kNotFound);
}

void HubRun::reap() {
  for (std::size_t r = 0; r < children_.size(); ++r) {
    reap(r);
  }
}

// Whether it has ended by now.
bool HubRun::reap(std::size_t rank) {
  Child& child = children_[rank];
  int status = 0;
  if (child.status || waitpid(child.pid, &status, WNOHANG) != child.pid) {
    return child.status.has_value();
  }
  child.status = status;
  const int code = lab::exit_code(status);
  note(hub_.ended(rank, code == 0, ending_text(status)));
  if (code != 0 && !(child.lost && hub_.is_outlived(rank))) {
    fail(code, fmt::format("{} {}", name_of(rank), ending_text(status)));
  }
  return true;
}

// One that was lost, has ended, and is not needed by the others.
bool HubRun::may_join(std::size_t rank) const {
  const Child& child = children_[rank];
  return child.lost && child.status && child.may_start && !ends_at_ && ending_.signal == 0 &&
         hub_.is_outlived(rank) && hub_.takes_joiners();
}

void HubRun::start_again(std::size_t rank) {
  Child& child = children_[rank];
  child.may_start = child.restarts.take(newest_checkpoint(plan_.checkpoints));
  if (!child.may_start) {
    return;
  }
  if (!std::exchange(child.came, false)) {
    hosts_[rank] = moved_from({hosts_[rank]}, hosts_)[rank];
  }
  warn(fmt::format("launch: starting {} again ({} of {}), which joins the others", name_of(rank),
                   child.restarts.taken(), plan_.rejoins));
  child.status.reset();
  if (const auto started = start(rank); !started) {
    warn(started.error().message());
    child.status = EXIT_FAILURE;
    child.may_start = false;
  }
}

void HubRun::note(const std::vector<Hub::Happening>& happenings) {
  for (const Hub::Happening& happening : happenings) {
    if (happening.code && happening.cut_off) {
      const std::string why =
          fmt::format("the connection between {} and {} broke, while both reach launch",
                      name_of(*happening.cut_off), name_of(happening.rank));
      warn(fmt::format("launch: {}; training needs both", why));
      fail(*happening.code, why);
    } else if (happening.code) {
      fail(*happening.code, fmt::format("{} failed", name_of(happening.rank)));
    } else if (happening.is_back) {
      children_[happening.rank].lost = false;
      children_[happening.rank].came = true;
    } else {
      note_lost(happening);
    }
  }
}

// Its exit tells more than its connection, and comes a little later. While all end, most losses are
// of those that end; but who is silent does not hear that it should.
void HubRun::note_lost(const Hub::Happening& lost) {
  Child& child = children_[lost.rank];
  if (child.lost || (ends_at_ && !lost.silent)) {
    return;
  }
  child.lost = true;
  for (int look = 0; look < 10 && !lost.cut_off && !reap(lost.rank); ++look) {
    usleep(20'000);
  }
  const std::string why = fmt::format("{} was lost: {}", name_of(lost.rank),
                                      child.status ? ending_text(*child.status) : lost.lost);
  if (hub_.is_outlived(lost.rank) && !ends_at_) {
    warn(fmt::format("launch: {}; the others go on", why));
  } else {
    warn("launch: " + why);
    fail(child.status ? lab::exit_code(*child.status) : kFailed, why);
  }
  if (!child.status) {  // it may be stopped, or out of reach
    kill(-child.pid, SIGKILL);
  }
}

// The first failure counts. The others have some time to end by themselves.
void HubRun::fail(int code, const std::string& why) {
  if (!ends_at_) {
    ending_.code = code;
    ending_.why = why;
    ends_at_ = clock_.now() + kToEnd;
  }
}

void HubRun::pass_on(int signal) {
  for (std::size_t r = 0; r < children_.size(); ++r) {
    if (!children_[r].status && !hub_.signal(r, signal)) {
      kill(-children_[r].pid, signal);
    }
  }
}

void HubRun::end_stragglers() {
  if (ends_at_ && clock_.now() > *ends_at_) {
    hub_.end_all(ending_.code);
    kill_all(std::exchange(next_signal_, SIGKILL));
    ends_at_ = clock_.now() + kToEnd;
  }
}

void HubRun::kill_all(int signal) {
  for (const Child& child : children_) {
    if (child.pid > 0 && !child.status) {
      kill(-child.pid, signal);
    }
  }
}

// Where all processes reach this one.
Result<std::string> listening_address(const std::vector<std::string>& hosts) {
  const auto remote =
      std::ranges::find_if(hosts, [](const std::string& host) { return !host.empty(); });
  return remote == hosts.end() ? Result<std::string>("127.0.0.1") : address_towards(*remote);
}

}  // namespace

Ending run_at_hub(const HubPlan& plan, std::int64_t restart) {
  const auto address = listening_address(plan.place.hosts);
  if (!address) {
    return {bad_input(address.error().within("launch"))};
  }
  auto hub = Hub::open(*address, plan.place.hosts.size());
  if (!hub) {
    return {failed(hub.error().within("launch"))};
  }
  return HubRun(plan, *std::move(hub), restart).run();
}

}  // namespace sluice::cli
