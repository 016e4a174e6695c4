#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "support/temporary_folder.h"

namespace sluice {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

// Runs the command in a shell, in this folder.
inline Outcome run_command(const std::string& command, const TemporaryFolder& folder) {
  const std::string line =
      "cd '" + folder.path().string() + "' && { " + command + "; } >out.txt 2>err.txt";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("out.txt"),
          folder.read("err.txt")};
}

}  // namespace sluice
