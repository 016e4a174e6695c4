#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "formats/cluster.h"
#include "lab/account.h"

// An emulated cluster, as data: its hosts h0 ... and a head without limits, which runs mpirun and
// whose bridge is the switch. Everything lives in its own namespaces, so names and addresses are
// the same in every lab.
namespace sluice::lab {

using Words = std::vector<std::string>;  // of a command line

// Bits per second; absent: no limit.
using Rate = std::optional<std::int64_t>;

struct Spec {
  std::vector<Rate> rates;  // of the hosts' links, each direction
  std::size_t workers_per_host = 1;
  Words command;                      // started once per worker
  std::vector<Duration> delays = {};  // added to what enters and leaves a host; empty: none
  // The command runs once, on the head, where mpirun and `launch` start processes on the hosts.
  bool on_head = false;
  std::optional<Account> account = {};  // as whom the command runs; absent: as root
};

inline constexpr std::size_t kMaxHosts = 250;

// "1gbit", "500mbit", "2.5mbit", "64kbit", or "none" for no limit.
Result<Rate> parse_rate(const std::string& text);
// The same rate for all hosts but those in `exceptions`: "2=500mbit,3=none".
Result<std::vector<Rate>> parse_rates(std::size_t hosts, const std::string& rate,
                                      const std::string& exceptions);

// The hosts of a cluster's file and their workers, without a command. The error says what a lab
// cannot emulate.
Result<Spec> spec_of(const Cluster& cluster);

std::string host_name(std::size_t host);
// The head's end of a host's link.
std::string port_name(std::size_t host);
// The /etc/hosts of every host and of the head.
std::string hosts_file(std::size_t hosts);

// A memory file system; the head and every host have one each. The head's has a folder for each
// host, with its namespaces.
inline constexpr const char* kShelf = "/dev/shm";

// mpirun's launch agent, on the head's shelf: runs a command on a host in the folder of the caller,
// as ssh does on another machine. It is a script, since the program would load LibTorch for every
// host.
std::string agent_path();
// With this nsenter.
std::string agent_script(const std::string& nsenter);
// On the head's shelf, for agents without privileges.
std::string own_nsenter_path();

struct Step {
  std::optional<std::size_t> host;  // where to run it; absent: on the head
  Words words;
};
// The commands that connect the hosts, in order.
std::vector<Step> network_steps(const Spec& spec);

// What mpirun starts processes with; each names its settings differently.
enum class Launcher {
  kOrte,   // up to Open MPI 4
  kPrrte,  // from Open MPI 5 on
};
// Takes the output of `mpirun --version`.
Result<Launcher> parse_launcher(std::string_view version);

// The command line that starts the command on all hosts, from the head; or the command itself, if
// it runs there.
Words launch_words(const Spec& spec, Launcher launcher);
// By these an mpirun on the head starts processes on the hosts: the hosts and their slots, which go
// to a file on its shelf, and the environment variables that name it and all else.
std::string slots_path();
std::string slots_file(const Spec& spec);
std::vector<std::pair<std::string, std::string>> launch_environment(const Spec& spec,
                                                                    Launcher launcher);

}  // namespace sluice::lab
