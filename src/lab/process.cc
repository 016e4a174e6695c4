#include "lab/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

namespace sluice::lab {
namespace {

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t got = read(fd, part.data(), part.size());
    if (got > 0) {
      text.append(part.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return text;
    }
  }
}

[[noreturn]] void run_body(const std::function<Result<void>()>& body, int complaints) {
  dup2(complaints, STDOUT_FILENO);
  dup2(complaints, STDERR_FILENO);
  const auto done = body();
  if (!done) {
    const std::string& message = done.error().message();
    (void)!write(complaints, message.data(), message.size());
  }
  _exit(done ? 0 : 1);
}

}  // namespace

Error system_error(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

namespace {

// The output of the body, or of a program that it execs, if it succeeds.
Result<std::string> text_of_child(const std::function<Result<void>()>& body) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error("a pipe cannot be created");
  }
  const pid_t child = fork();
  if (child == 0) {
    run_body(body, ends[1]);
  }
  close(ends[1]);
  const std::string text = child > 0 ? read_all(ends[0]) : std::string();
  close(ends[0]);
  if (child < 0) {
    return system_error("a process cannot be started");
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (const int code = exit_code(status); code != 0) {
    return Error(text.empty() ? "ended with code " + std::to_string(code) : text);
  }
  return text;
}

}  // namespace

Result<void> in_child(const std::function<Result<void>()>& body) {
  const auto text = text_of_child(body);
  return text ? Result<void>{} : text.error();
}

Result<std::string> output_of(const Words& words) {
  return text_of_child([&]() -> Result<void> { return become(words); });
}

std::optional<std::string> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = std::filesystem::path(folder) / name;
    if (access(program.c_str(), X_OK) == 0) {
      return program;
    }
  }
  return std::nullopt;
}

Error become(const Words& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  // Blocked signals would stay blocked in the program, which does not expect it.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvp(pointers.front(), pointers.data());
  return system_error(words.front() + " cannot be started");
}

Result<void> enter_host(const std::string& path) {
  // Threads that a library has started share the file system's state, which setns does not allow.
  if (unshare(CLONE_FS) != 0) {
    return system_error("unshare");
  }
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::current_path(ignored);
  // The mount namespace comes last, since it changes what paths mean.
  for (const char* kind : {"net", "uts", "mnt"}) {
    const int fd = open((path + "/" + kind).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, 0) != 0) {
      return system_error(path + ": its namespace " + kind + " cannot be entered");
    }
    close(fd);
  }
  std::filesystem::current_path(folder, ignored);
  return {};
}

int exit_code(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace sluice::lab
