#include "lab/head.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/file.h"
#include "drivers/realtime/processor.h"
#include "lab/process.h"

namespace sluice::lab {
namespace {

namespace fs = std::filesystem;

Result<void> mount_at(const std::string& place, const char* source, const char* type,
                      unsigned long flags) {
  if (mount(source, place.c_str(), type, flags, nullptr) != 0) {
    return system_error("mount " + place);
  }
  return {};
}

Result<void> take_name(const std::string& name) {
  if (sethostname(name.data(), name.size()) != 0) {
    return system_error("the host name cannot be set to " + name);
  }
  return {};
}

// Takes several steps until one fails; returns the first failure.
template <class First, class... Rest>
Result<void> all_of(First first, Rest... rest) {
  Result<void> done = first();
  if constexpr (sizeof...(rest) > 0) {
    return done ? all_of(rest...) : done;
  } else {
    return done;
  }
}

fs::path program() { return fs::read_symlink("/proc/self/exe"); }

Result<void> set_up_shelf() { return mount_at(kShelf, "tmpfs", "tmpfs", 0); }

// Makes `sluice` in the command mean this program, and tells it with whom it shares the cores.
void prepare_environment(const Spec& spec, Launcher launcher) {
  const char* path = std::getenv("PATH");
  const std::string folder = program().parent_path();
  setenv("PATH", path == nullptr ? folder.c_str() : (folder + ":" + path).c_str(), 1);
  setenv(kLabHosts, std::to_string(spec.rates.size()).c_str(), 1);
  if (spec.on_head) {
    for (const auto& [key, value] : launch_environment(spec, launcher)) {
      setenv(key.c_str(), value.c_str(), 1);
    }
  }
}

Result<void> set_up_agent(bool without_privileges) {
  const std::string nsenter = find_program("nsenter").value_or("nsenter");
  if (!without_privileges) {
    return write_file(agent_path(), agent_script(nsenter));
  }
  return all_of([&] { return copy_nsenter(nsenter, own_nsenter_path()); },
                [] { return write_file(agent_path(), agent_script(own_nsenter_path())); });
}

Result<void> furnish_head(const Spec& spec) {
  if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS) != 0) {
    return system_error("the head's namespaces cannot be created");
  }
  const std::string hosts = std::string(kShelf) + "/hosts";
  return all_of([] { return mount_at("/", "none", nullptr, MS_REC | MS_PRIVATE); },
                [] { return mount_at("/proc", "proc", "proc", 0); },
                set_up_shelf,  //
                [&] { return write_file(hosts, hosts_file(spec.rates.size())); },
                [&] { return set_up_agent(spec.account.has_value()); },
                [&] { return write_file(slots_path(), slots_file(spec)); },
                [&] { return mount_at("/etc/hosts", hosts.c_str(), nullptr, MS_BIND); },
                [] { return take_name("head"); });
}

// A process that does nothing: the host exists as long as it lives.
Result<void> make_host(std::size_t host) {
  constexpr unsigned long kOwn = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS;
  const long holder = syscall(SYS_clone, kOwn | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (holder == 0) {
    for (;;) {
      pause();
    }
  }
  if (holder < 0) {
    return system_error("the namespaces of " + host_name(host) + " cannot be created");
  }
  const fs::path shelf = fs::path(kShelf) / host_name(host);
  std::error_code failed;
  fs::create_symlink(fmt::format("/proc/{}/ns", holder), shelf, failed);
  if (failed) {
    return Error(shelf.string() + ": " + failed.message());
  }
  return in_child([&] {
    return all_of([&] { return enter_host(shelf); }, [&] { return take_name(host_name(host)); },
                  set_up_shelf);
  });
}

Result<void> take(const Step& step) {
  const auto done = in_child([&]() -> Result<void> {
    if (step.host.has_value()) {
      if (auto entered = enter_host(std::string(kShelf) + "/" + host_name(*step.host)); !entered) {
        return entered;
      }
    }
    return become(step.words);
  });
  if (!done) {
    return done.error().within(fmt::format("{}", fmt::join(step.words, " ")));
  }
  return {};
}

Result<void> build(const Spec& spec) {
  if (auto furnished = furnish_head(spec); !furnished) {
    return furnished;
  }
  for (std::size_t h = 0; h < spec.rates.size(); ++h) {
    if (auto made = make_host(h); !made) {
      return made;
    }
  }
  for (const Step& step : network_steps(spec)) {
    if (auto taken = take(step); !taken) {
      return taken;
    }
  }
  return {};
}

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGCHLD);
  return signals;
}

// Returns only if that fails.
Error start_command(const Spec& spec, Launcher launcher) {
  if (spec.account) {
    if (const auto changed = continue_as(*spec.account); !changed) {
      return changed.error();
    }
  }
  return become(launch_words(spec, launcher));
}

// All of it, unless the owner has died.
void send(int report, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = write(report, text.data(), text.size());
    if (sent <= 0) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Reaps all orphans of the lab until the command has ended.
int wait_for(pid_t command) {
  const sigset_t signals = watched_signals();
  for (;;) {
    if (sigwaitinfo(&signals, nullptr) == SIGTERM) {
      kill(command, SIGTERM);
    }
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == command) {
        return exit_code(status);
      }
    }
  }
}

}  // namespace

void live_as_head(const Spec& spec, Launcher launcher, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Leaves the terminal: only the owner gets a Ctrl-C, and passes it on.
  setsid();
  const sigset_t signals = watched_signals();
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (const auto built = build(spec); !built) {
    send(report, built.error().message());
    _exit(1);
  }
  prepare_environment(spec, launcher);
  const pid_t command = fork();
  if (command == 0) {
    const std::string message = start_command(spec, launcher).message() + "\n";
    (void)!write(STDERR_FILENO, message.data(), message.size());
    _exit(127);
  }
  // A failed write means that the owner died before it could be set as the parent.
  const bool owned = write(report, &kStanding, 1) == 1;
  const int code = owned && command > 0 ? wait_for(command) : 1;
  if (const auto counters = read_file("/proc/net/dev"); counters) {
    send(report, *counters);
  }
  _exit(code);
}

}  // namespace sluice::lab
