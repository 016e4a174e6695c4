#include "cli/mpirun_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "cli/console.h"
#include "lab/interrupts.h"
#include "lab/process.h"

namespace sluice::cli {
namespace {

constexpr int kPollMs = 100;
// For the launcher, once all of its processes have ended: after a failure mpirun of Open MPI 4 now
// and then waits for itself.
constexpr auto kToFollow = std::chrono::seconds(5);
// The same, once it has begun to end them.
constexpr auto kToAbort = std::chrono::seconds(2);
// Of Open MPI 4, where the user has not set it: its daemons try for half a minute to reach mpirun,
// since a link may come back, and mpirun does not wait longer for them.
constexpr std::array kPatience{std::pair{"OMPI_MCA_oob_tcp_peer_retries", "30"},
                               std::pair{"OMPI_MCA_oob_tcp_retry_delay", "1"},
                               std::pair{"OMPI_MCA_orte_startup_timeout", "30"}};

// A file of /proc; empty if its process has ended.
std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Whether a child of mpirun is a process of the job that has not ended. What it starts on other
// machines are none, and may end at once.
bool is_at_work(const std::string& child) {
  const std::string status = text_of("/proc/" + child + "/stat");
  const std::size_t name_end = status.rfind(')');  // a name may have any characters
  const bool lives = name_end < status.size() && !status.substr(name_end).starts_with(") Z");
  return lives && text_of("/proc/" + child + "/environ").find("PMIX_RANK=") != std::string::npos;
}

bool has_processes(pid_t launcher) {
  std::error_code none;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", launcher), none)) {
    std::istringstream children(text_of((thread.path() / "children").string()));
    for (std::string child; children >> child;) {
      if (is_at_work(child)) {
        return true;
      }
    }
  }
  return false;
}

// What the job says on standard error, which is passed on. mpirun tells there that it ends all
// processes; if one of its machines is out of reach, it then waits for that without end.
class JobErrors {
 public:
  JobErrors() {
    if (pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
      ends_ = {-1, -1};
    }
  }
  ~JobErrors() {
    close(ends_[0]);
    close(ends_[1]);
  }
  JobErrors(const JobErrors&) = delete;
  JobErrors& operator=(const JobErrors&) = delete;

  int fd() const { return ends_[0]; }
  // In the job's process. It gets a blocking end, as programs expect.
  void take() const {
    if (ends_[1] >= 0) {
      fcntl(ends_[1], F_SETFL, 0);
      dup2(ends_[1], STDERR_FILENO);
    }
  }
  // All that is there now.
  void pass_on() {
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = read(ends_[0], part.data(), part.size())) > 0;) {
      const std::string text(part.data(), static_cast<std::size_t>(got));
      fmt::print(stderr, "{}", text);
      last_ = (last_ + text).substr(last_.size() > kKept ? last_.size() - kKept : 0);
      aborts_ = aborts_ || last_.find(kAborts) != std::string::npos;
    }
  }
  bool aborts() const { return aborts_; }

 private:
  static constexpr const char* kAborts = "MPI_ABORT was invoked";
  static constexpr std::size_t kKept = 64;  // for words that come in two parts

  std::array<int, 2> ends_{};
  std::string last_;
  bool aborts_ = false;
};

// Whether the launcher has stayed behind. Asked again and again.
class Straggler {
 public:
  bool is_one(pid_t launcher, bool aborts) {
    const auto now = std::chrono::steady_clock::now();
    if (has_processes(launcher)) {
      alone_since_ = now;
    }
    if (aborts && !aborts_since_) {
      aborts_since_ = now;
    }
    return (alone_since_ && now - *alone_since_ > kToFollow) ||
           (aborts_since_ && now - *aborts_since_ > kToAbort);
  }

 private:
  using Time = std::chrono::steady_clock::time_point;

  std::optional<Time> alone_since_;  // none: nothing has begun
  std::optional<Time> aborts_since_;
};

// In a process group of its own: a Ctrl-C comes to it once, from here.
[[noreturn]] void become_job(const Words& words, std::int64_t restart, const JobErrors& errors) {
  setpgid(0, 0);
  errors.take();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setenv(kRestartVariable, fmt::format("{}", restart).c_str(), 1);
  for (const auto& [key, value] : kPatience) {
    setenv(key, value, 0);
  }
  failed(lab::become(words).within("launch"));
  _exit(kNotFound);
}

}  // namespace

Ending run_mpirun(const Words& words, std::int64_t restart) {
  const lab::Interrupts interrupts;
  JobErrors errors;
  const pid_t job = fork();
  if (job == 0) {
    become_job(words, restart, errors);
  }
  if (job < 0) {
    return {failed(lab::system_error("launch: fork"))};
  }
  Ending ending;
  Straggler straggler;
  int status = 0;
  while (waitpid(job, &status, WNOHANG) == 0) {
    std::array<pollfd, 2> readable{pollfd{interrupts.fd(), POLLIN, 0},
                                   pollfd{errors.fd(), POLLIN, 0}};
    poll(readable.data(), readable.size(), kPollMs);
    errors.pass_on();
    if (const int signal = interrupts.take(); signal != 0) {
      ending.signal = signal;
      kill(job, signal);
    }
    if (straggler.is_one(job, errors.aborts())) {
      warn(
          fmt::format("launch: {} has not ended with its processes, and is killed", words.front()));
      kill(-job, SIGKILL);
      kill(job, SIGKILL);
      waitpid(job, &status, 0);
      break;
    }
  }
  errors.pass_on();
  ending.code = lab::exit_code(status);
  return ending;
}

}  // namespace sluice::cli
