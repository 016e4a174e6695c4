#include "lab/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "drivers/processes/launch.h"

namespace sluice::lab {
namespace {

constexpr const char* kSubnet = "10.77.0.0/24";
constexpr std::size_t kHeadAddress = 254;

std::string address(std::size_t last) { return fmt::format("10.77.0.{}", last); }
std::string address_of(std::size_t host) { return address(host + 1); }

Error bad_rate(const std::string& text) {
  return Error(fmt::format(
      "is \"{}\", expected a rate from 8kbit to 1000gbit such as 500mbit or 2.5gbit, or none",
      text));
}

// The bucket fills up while the link is idle, and its content then passes at once. So it is small;
// but it must hold two of the segments that the kernel hands over, and what arrives while its timer
// is late.
std::int64_t bucket_bytes(std::int64_t bits_per_second) {
  constexpr std::int64_t kTwoFragments = 131'072;
  constexpr std::int64_t kLatesPerSecond = 2'000;
  return std::max(kTwoFragments, bits_per_second / 8 / kLatesPerSecond);
}

Words limit(const std::string& device, std::int64_t bits_per_second) {
  return {"tc",
          "qdisc",
          "add",
          "dev",
          device,
          "root",
          "handle",
          "1:",
          "tbf",
          "rate",
          fmt::format("{}bit", bits_per_second),
          "burst",
          fmt::format("{}", bucket_bytes(bits_per_second)),
          "latency",
          "50ms"};
}

// Behind the limit of the rate, if there is one.
Words delay(const std::string& device, bool has_limit, Duration time) {
  Words words{"tc", "qdisc", "add", "dev", device};
  if (has_limit) {
    words.insert(words.end(), {"parent", "1:1", "handle", "10:"});
  } else {
    words.emplace_back("root");
  }
  const std::string us = fmt::format("{}us", std::llround(to_us(time)));
  words.insert(words.end(), {"netem", "delay", us, "limit", "100000"});
  return words;
}

Result<std::int64_t> bits_per_second(double gbps, const std::string& whose) {
  const double bits = gbps * 1e9;
  if (!(bits >= 8e3 && bits <= 1e12)) {
    return Error(
        fmt::format("bandwidth_gbps: {} has {:g}; a lab needs one from 8e-6 to 1000", whose, gbps));
  }
  return std::llround(bits);
}

// The rate of the slowest link, which all wait for.
double gbps_of(const std::vector<Rate>& rates) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const Rate& rate : rates) {
    slowest = rate ? std::min(slowest, static_cast<double>(*rate) / 1e9) : slowest;
  }
  return slowest;
}

Words words_of(const std::string& text) {
  std::istringstream stream(text);
  Words words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

using Parameters = std::vector<std::pair<std::string, std::string>>;

void append(Words& words, const std::string& option, const Parameters& parameters) {
  for (const auto& [key, value] : parameters) {
    words.insert(words.end(), {option, key, value});
  }
}

// The agent reaches every host directly from the head; every host has its own files.
Parameters launcher_parameters(Launcher launcher) {
  const std::string agent = "sh " + agent_path();
  if (launcher == Launcher::kOrte) {
    return {{"plm", "rsh"},
            {"plm_rsh_agent", agent},
            {"plm_rsh_no_tree_spawn", "1"},
            {"oob_tcp_if_include", kSubnet},
            {"orte_tmpdir_base", kShelf}};
  }
  return {{"plm", "ssh"},
          {"plm_ssh_agent", agent},
          {"plm_ssh_no_tree_spawn", "1"},
          {"prte_if_include", kSubnet},
          {"prte_tmpdir_base", kShelf},
          // A daemon that starts processes on threads of its own misses the end of a process that
          // ends at once, and mpirun then waits for ever (PRRTE 3.0).
          {"odls_base_max_threads", "0"}};
}

Parameters mpi_parameters(const Spec& spec) {
  return {
      {"pml", "ob1"},
      {"btl", spec.workers_per_host > 1 ? "self,vader,tcp" : "self,tcp"},
      {"btl_tcp_if_include", kSubnet},
      // A virtual interface does not report its rate, which a process would need to choose the
      // size.
      {"btl_tcp_rdma_pipeline_frag_size", fmt::format("{}", fragment_bytes(gbps_of(spec.rates)))},
      {"mpi_yield_when_idle", "1"},
  };
}

}  // namespace

Result<Rate> parse_rate(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 3> kUnits{
      {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}}};
  if (text == "none") {
    return Rate();
  }
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size());
  const auto* found = std::ranges::find(kUnits, unit, [](const auto& u) { return u.first; });
  if (fault != std::errc{} || found == kUnits.end()) {
    return bad_rate(text);
  }
  const double bits = value * found->second;
  if (!(bits >= 8e3 && bits <= 1e12)) {
    return bad_rate(text);
  }
  return Rate(std::llround(bits));
}

Result<std::vector<Rate>> parse_rates(std::size_t hosts, const std::string& rate,
                                      const std::string& exceptions) {
  const auto common = parse_rate(rate);
  if (!common) {
    return common.error().within("--rate");
  }
  std::vector<Rate> rates(hosts, *common);
  for (const std::string& entry : split_list(exceptions)) {
    const std::size_t equals = entry.find('=');
    std::size_t host = 0;
    const char* begin = entry.data();
    const char* middle = begin + std::min(equals, entry.size());
    const auto [end, fault] = std::from_chars(begin, middle, host);
    if (equals == std::string::npos || fault != std::errc{} || end != middle || host >= hosts) {
      return Error(fmt::format(
          "--rate-of: \"{}\"; expected HOST=RATE with a host from 0 to {}, such as 0=500mbit, and "
          "commas between several",
          entry, hosts - 1));
    }
    const auto exception = parse_rate(entry.substr(equals + 1));
    if (!exception) {
      return exception.error().within(fmt::format("--rate-of: host {}", host));
    }
    rates[host] = *exception;
  }
  return rates;
}

Result<Spec> spec_of(const Cluster& cluster) {
  const auto refuse = [](const char* what, const char* why) {
    return Error(
        fmt::format("{}: a lab cannot emulate it: {}; leave it out, or use simulate", what, why));
  };
  if (cluster.allreduce) {
    return refuse("[allreduce]", "its hosts exchange messages");
  }
  if (cluster.racks) {
    return refuse("[racks]", "all its hosts are at one switch");
  }
  if (cluster.hosts_per_nic > 1) {
    return refuse("hosts_per_nic", "each of its hosts has a link of its own");
  }
  if (cluster.ingress_gbps > 0 && cluster.ingress_gbps != cluster.bandwidth_gbps) {
    return refuse("ingress_gbps", "a link has one rate for both directions");
  }
  const std::size_t hosts = cluster.topology.hosts();
  if (hosts > kMaxHosts) {
    return Error(fmt::format("hosts: is {}, and a lab has at most {}", hosts, kMaxHosts));
  }
  const auto common = bits_per_second(cluster.bandwidth_gbps, "the cluster");
  if (!common) {
    return common.error();
  }
  Spec spec{.rates = std::vector<Rate>(hosts, *common),
            .workers_per_host = cluster.topology.workers_per_host(),
            .command = {},
            .delays = std::vector<Duration>(hosts)};
  for (const SpecialHost& special : cluster.special_hosts) {
    if (special.bandwidth_gbps > 0) {
      const auto own =
          bits_per_second(special.bandwidth_gbps, fmt::format("host {}", special.index));
      if (!own) {
        return own.error();
      }
      spec.rates[special.index] = *own;
    }
    // What the machine's own network takes stands for the latency of the others.
    spec.delays[special.index] =
        std::max(Duration{0}, special.latency.value_or(cluster.latency) - cluster.latency);
  }
  return spec;
}

std::string host_name(std::size_t host) { return fmt::format("h{}", host); }
std::string port_name(std::size_t host) { return fmt::format("port{}", host); }

std::string hosts_file(std::size_t hosts) {
  std::string text = fmt::format("127.0.0.1 localhost\n{} head\n", address(kHeadAddress));
  for (std::size_t h = 0; h < hosts; ++h) {
    text += fmt::format("{} {}\n", address_of(h), host_name(h));
  }
  return text;
}

std::string agent_path() { return std::string(kShelf) + "/agent"; }

std::string own_nsenter_path() { return std::string(kShelf) + "/nsenter"; }

std::string agent_script(const std::string& nsenter) {
  return fmt::format(
      "host={0}/$1; shift\n"
      "exec {1} --net=$host/net --uts=$host/uts --mount=$host/mnt"
      " sh -c 'cd \"$0\" 2>/dev/null; eval \"$*\"' \"$PWD\" \"$@\"\n",
      kShelf, nsenter);
}

std::vector<Step> network_steps(const Spec& spec) {
  std::vector<Step> steps;
  const auto on_head = [&](const std::string& text) { steps.push_back({{}, words_of(text)}); };
  on_head("ip link set lo up");
  on_head("ip link add switch type bridge");
  on_head(fmt::format("ip address add {}/24 dev switch", address(kHeadAddress)));
  on_head("ip link set switch up");
  for (std::size_t h = 0; h < spec.rates.size(); ++h) {
    const auto on_host = [&](const std::string& text) { steps.push_back({h, words_of(text)}); };
    const std::string port = port_name(h);
    on_head(fmt::format("ip link add {} type veth peer name eth0 netns {}/{}/net", port, kShelf,
                        host_name(h)));
    on_head(fmt::format("ip link set {} master switch up", port));
    on_host("ip link set lo up");
    on_host(fmt::format("ip address add {}/24 dev eth0", address_of(h)));
    on_host("ip link set eth0 up");
    // Clusters use Cubic, so the lab does too, regardless of this machine's default.
    on_host(fmt::format("ip route replace {} dev eth0 congctl cubic", kSubnet));
    if (spec.rates[h].has_value()) {
      steps.push_back({{}, limit(port, *spec.rates[h])});
      steps.push_back({h, limit("eth0", *spec.rates[h])});
    }
    if (h < spec.delays.size() && spec.delays[h] > Duration{0}) {
      steps.push_back({{}, delay(port, spec.rates[h].has_value(), spec.delays[h])});
      steps.push_back({h, delay("eth0", spec.rates[h].has_value(), spec.delays[h])});
    }
  }
  return steps;
}

Result<Launcher> parse_launcher(std::string_view version) {
  constexpr std::string_view kName = "(Open MPI) ";
  const std::size_t name = version.find(kName);
  int major = 0;
  if (name != std::string_view::npos) {
    const std::string_view number = version.substr(name + kName.size());
    std::from_chars(number.data(), number.data() + number.size(), major);
  }
  if (major < 1) {
    return Error(fmt::format(
        "mpirun is not Open MPI's, since its version is \"{}\"; put Open MPI's first on "
        "the PATH (apt-get install openmpi-bin)",
        version.substr(0, version.find('\n'))));
  }
  return major < 5 ? Launcher::kOrte : Launcher::kPrrte;
}

Words launch_words(const Spec& spec, Launcher launcher) {
  if (spec.on_head) {
    return spec.command;
  }
  const std::size_t per_host = spec.workers_per_host;
  Words hosts;
  for (std::size_t h = 0; h < spec.rates.size(); ++h) {
    hosts.push_back(fmt::format("{}:{}", host_name(h), per_host));
  }
  Words words{"mpirun", "--allow-run-as-root", "--bind-to", "none", "--map-by", "slot"};
  append(words, launcher == Launcher::kOrte ? "--mca" : "--prtemca", launcher_parameters(launcher));
  append(words, "--mca", mpi_parameters(spec));
  words.insert(words.end(), {"--host", fmt::format("{}", fmt::join(hosts, ",")), "-np",
                             fmt::format("{}", spec.rates.size() * per_host)});
  words.insert(words.end(), spec.command.begin(), spec.command.end());
  return words;
}

std::string slots_path() { return std::string(kShelf) + "/slots"; }

std::string slots_file(const Spec& spec) {
  std::string text;
  for (std::size_t h = 0; h < spec.rates.size(); ++h) {
    text += fmt::format("{} slots={}\n", host_name(h), spec.workers_per_host);
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> launch_environment(const Spec& spec,
                                                                    Launcher launcher) {
  const bool orte = launcher == Launcher::kOrte;
  Parameters runtime = launcher_parameters(launcher);
  runtime.emplace_back(orte ? "orte_default_hostfile" : "prte_default_hostfile", slots_path());
  runtime.emplace_back(orte ? "rmaps_base_mapping_policy" : "rmaps_default_mapping_policy", "slot");
  Parameters variables;
  for (const auto& [key, value] : runtime) {
    variables.emplace_back((orte ? "OMPI_MCA_" : "PRTE_MCA_") + key, value);
  }
  for (const auto& [key, value] : mpi_parameters(spec)) {
    variables.emplace_back("OMPI_MCA_" + key, value);
  }
  return variables;
}

}  // namespace sluice::lab
