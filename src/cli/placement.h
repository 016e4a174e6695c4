#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice::cli {

// On which hosts the processes of a job run.
struct Placement {
  std::vector<std::string> hosts;  // by rank; an empty name: this machine
  std::vector<std::string> agent{
      "ssh"};                           // that runs a command on another host, which it names last
  std::vector<std::string> shell = {};  // there, if the agent does not have one run the command
};

// The hosts of the placement on which the agent cannot run a command within some seconds.
std::set<std::string> unreachable(const Placement& placement);

// The same ranks without these hosts: each process on one of them moves to the host that has the
// fewest then. If no other is left, nothing changes.
std::vector<std::string> moved_from(const std::set<std::string>& gone,
                                    std::vector<std::string> hosts);

// The placement without hosts that are out of reach, if that is another one; says so.
std::optional<Placement> without_unreachable(const Placement& placement,
                                             const std::function<void(const std::string&)>& warn);

// Such a file for mpirun: a host a line, "NAME slots=N" or, for MPICH, "NAME:N".
std::string hostfile_of(const std::vector<std::string>& hosts, bool mpich);

// A file with this text, as long as this lives. Throws if it cannot be written.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace sluice::cli
