#include "cli/restarts.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "cli/console.h"
#include "cli/restart_count.h"
#include "formats/checkpoint.h"
#include "lab/interrupts.h"
#include "lab/process.h"

namespace sluice::cli {
namespace {

constexpr int kPollMs = 100;
constexpr int kNotFound = 127;

struct Ending {
  int code = 0;
  int signal = 0;  // that this process got meanwhile; 0: none
};

// In a process group of its own: a Ctrl-C comes to it once, from here.
[[noreturn]] void become_job(const Words& words, std::int64_t restart) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setenv(kRestartVariable, fmt::format("{}", restart).c_str(), 1);
  failed(lab::become(words).within("launch"));
  _exit(kNotFound);
}

Ending run_once(const Words& words, std::int64_t restart) {
  const lab::Interrupts interrupts;
  const pid_t job = fork();
  if (job == 0) {
    become_job(words, restart);
  }
  if (job < 0) {
    return {failed(lab::system_error("launch: fork"))};
  }
  Ending ending;
  int status = 0;
  while (waitpid(job, &status, WNOHANG) == 0) {
    pollfd readable{interrupts.fd(), POLLIN, 0};
    poll(&readable, 1, kPollMs);
    if (const int signal = interrupts.take(); signal != 0) {
      ending.signal = signal;
      kill(job, signal);
    }
  }
  ending.code = lab::exit_code(status);
  return ending;
}

std::optional<Iteration> newest_in(const std::string& checkpoints) {
  if (checkpoints.empty()) {
    return std::nullopt;
  }
  const auto iterations = CheckpointFolder(checkpoints).iterations();
  return iterations.empty() ? std::nullopt : std::optional(iterations.front());
}

std::string newest_text(const std::string& checkpoints, std::optional<Iteration> newest) {
  if (checkpoints.empty()) {
    return "it has no --checkpoint, so all is lost";
  }
  return newest ? fmt::format("the newest checkpoint is that of iteration {}", *newest)
                : "there is no checkpoint yet";
}

}  // namespace

int run_with_restarts(const Words& words, std::int64_t most, const std::string& checkpoints) {
  RestartCount count(most, newest_in(checkpoints));
  for (std::int64_t restart = 0;; ++restart) {
    const Ending ending = run_once(words, restart);
    if (ending.code == 0 || ending.code == kBadInput || ending.code == kNotFound ||
        ending.signal != 0) {
      return ending.code;
    }
    const auto newest = newest_in(checkpoints);
    const std::string what = fmt::format("launch: the job ended with code {}; {}", ending.code,
                                         newest_text(checkpoints, newest));
    if (!count.take(newest)) {
      failed(Error(fmt::format("{}; given up after {} restart{} without a new one", what, most,
                               most == 1 ? "" : "s")));
      return ending.code;
    }
    warn(fmt::format("{}; starting again ({} of {})", what, count.taken(), count.most()));
  }
}

}  // namespace sluice::cli
