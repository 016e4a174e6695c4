#include "formats/cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "formats/document.h"

namespace sluice {
namespace {

// Far above any real use, and low enough that node ids and times fit their types.
constexpr std::int64_t kMaxNodes = 1'000'000;
constexpr std::int64_t kMaxFragmentBytes = 1'000'000'000;
constexpr double kLongestUs = 3600e6;
constexpr double kMaxNsPerByte = 1e9;
constexpr double kMinGbps = 1e-9;
constexpr double kMaxGbps = 1e9;
constexpr double kMaxCores = 1e6;

Topology read_topology(Fields& fields) {
  const Form count = Form::integer(1, kMaxNodes);
  const auto hosts = fields.get<std::int64_t>("hosts", count);
  const auto per_host = fields.get<std::int64_t>("workers_per_host", count, 1);
  const Json* servers = fields.optional("servers", count.or_word({"per-host"}));
  const bool apart = servers != nullptr && servers->is_number();
  const auto servers_apart = apart ? servers->get<std::int64_t>() : 0;
  const auto servers_per_host = fields.get<std::int64_t>("servers_per_host", count, 1);
  if (hosts * per_host > kMaxNodes) {
    fields.complain("workers_per_host",
                    fmt::format("{} hosts come to {} workers, expected at most {}", hosts,
                                hosts * per_host, kMaxNodes));
  }
  if (!apart && hosts * servers_per_host > kMaxNodes) {
    fields.complain("servers_per_host",
                    fmt::format("{} hosts come to {} servers, expected at most {}", hosts,
                                hosts * servers_per_host, kMaxNodes));
  }
  if (servers_apart % servers_per_host != 0) {
    fields.complain("servers_per_host",
                    fmt::format("{} servers do not fill hosts of {}, expected a divisor of {}",
                                servers_apart, servers_per_host, servers_apart));
  }
  return Topology(static_cast<std::size_t>(hosts), static_cast<std::size_t>(per_host),
                  static_cast<std::size_t>(servers_apart / servers_per_host), 1,
                  static_cast<std::size_t>(servers_per_host));
}

// What moving messages costs the processors.
void read_processors(Fields& fields, Cluster& cluster) {
  const Form time = Form::number(0, kLongestUs);
  const Form cost = Form::number(0, kMaxNsPerByte);
  const Form cores = Form::number(0, kMaxCores);
  cluster.cores = fields.get("cores", cores, cluster.cores);
  cluster.compute_cores = fields.get("compute_cores", cores, cluster.compute_cores);
  cluster.message_threads =
      fields.get("message_threads", Form::integer(1, 2), cluster.message_threads);
  cluster.sending.startup = from_us(fields.get<double>("send_message_us", time, 0));
  cluster.sending.ns_per_byte = fields.get<double>("send_ns_per_byte", cost, 0);
  cluster.receiving.startup = from_us(fields.get<double>("receive_message_us", time, 0));
  cluster.receiving.ns_per_byte = fields.get<double>("receive_ns_per_byte", cost, 0);
}

constexpr double kMinSpeed = 1e-6;
constexpr double kMaxSpeed = 1e6;
constexpr double kMaxJitter = 1;

std::vector<SpecialHost> read_special_hosts(const Json& list, std::size_t hosts, Fields& parent) {
  std::vector<SpecialHost> special;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("{}: host[{}]", parent.where(), i);
    if (!list[i].is_object()) {
      parent.merge(Error(where + ": expected a table [[host]]"));
      continue;
    }
    Fields fields(list[i], where);
    SpecialHost host;
    const Form which = Form::integer(0, static_cast<std::int64_t>(hosts) - 1);
    host.index = static_cast<std::size_t>(fields.get<std::int64_t>("index", which));
    host.bandwidth_gbps = fields.get<double>("bandwidth_gbps", Form::number(kMinGbps, kMaxGbps), 0);
    if (const Json* latency = fields.optional("latency_us", Form::number(0, kLongestUs))) {
      host.latency = from_us(latency->get<double>());
    }
    host.speed = fields.get<double>("speed", Form::number(kMinSpeed, kMaxSpeed), 1);
    if (std::ranges::any_of(special, [&](const auto& h) { return h.index == host.index; })) {
      fields.complain("index", fmt::format("host {} has two tables", host.index));
    }
    parent.merge(fields.done());
    special.push_back(host);
  }
  return special;
}

Racks read_racks(const Json& table, Fields& parent) {
  Fields fields(table, parent.where() + ": racks");
  Racks racks;
  racks.hosts =
      static_cast<std::size_t>(fields.get<std::int64_t>("hosts", Form::integer(1, kMaxNodes), 1));
  racks.uplink_gbps = fields.get<double>("uplink_gbps", Form::number(kMinGbps, kMaxGbps));
  parent.merge(fields.done());
  return racks;
}

// What makes hosts differ.
void read_differences(Fields& fields, Cluster& cluster) {
  if (const Json* hosts = fields.optional("host", Form::list())) {
    cluster.special_hosts = read_special_hosts(*hosts, cluster.topology.hosts(), fields);
  }
  if (const Json* table = fields.optional("racks", Form::table())) {
    cluster.racks = read_racks(*table, fields);
  }
  cluster.hosts_per_nic = static_cast<std::size_t>(
      fields.get<std::int64_t>("hosts_per_nic", Form::integer(1, kMaxNodes), 1));
  cluster.jitter = fields.get<double>("jitter", Form::number(0, kMaxJitter), 0);
}

std::string differences_to_toml(const Cluster& cluster) {
  std::string toml;
  if (cluster.racks) {
    toml += fmt::format("[racks]\nhosts = {}\nuplink_gbps = {}\n", cluster.racks->hosts,
                        cluster.racks->uplink_gbps);
  }
  for (const SpecialHost& host : cluster.special_hosts) {
    toml += fmt::format("[[host]]\nindex = {}\nspeed = {}\n", host.index, host.speed);
    toml +=
        host.bandwidth_gbps > 0 ? fmt::format("bandwidth_gbps = {}\n", host.bandwidth_gbps) : "";
    toml += host.latency ? fmt::format("latency_us = {}\n", to_us(*host.latency)) : "";
  }
  return toml;
}

// As a + b M, or as a ring of n workers whose messages cost alpha + beta M and whose additions cost
// gamma M: 2 n alpha + 2 (n - 1)/n M beta + (n - 1)/n M gamma.
AllReduceCost read_allreduce(const Json& table, std::size_t workers, Fields& parent) {
  const Form time = Form::number(0, kLongestUs);
  const Form per_byte = Form::number(0, kMaxNsPerByte);
  Fields fields(table, parent.where() + ": allreduce");
  AllReduceCost cost;
  if (table.contains("alpha_us")) {
    const auto n = static_cast<double>(workers);
    const auto alpha_us = fields.get<double>("alpha_us", time);
    const auto beta = fields.get<double>("beta_ns_per_byte", per_byte);
    const auto gamma = fields.get<double>("gamma_ns_per_byte", per_byte);
    cost = {from_us(2 * n * alpha_us), (n - 1) / n * (2 * beta + gamma)};
  } else {
    cost.startup = from_us(fields.get<double>("startup_us", time));
    cost.ns_per_byte = fields.get<double>("ns_per_byte", per_byte);
  }
  parent.merge(fields.done());
  return cost;
}

}  // namespace

Duration Cluster::wire_time(Bytes bytes) const {
  return from_ns(static_cast<double>(bytes) * 8 / bandwidth_gbps);
}

Duration Cluster::ingress_time(Bytes bytes) const {
  return ingress_gbps == 0 ? wire_time(bytes)
                           : from_ns(static_cast<double>(bytes) * 8 / ingress_gbps);
}

double Cluster::slowdown(std::size_t worker) const {
  const HostId own = topology.host_of(topology.worker(worker));
  const auto special = std::ranges::find(special_hosts, own.index(), &SpecialHost::index);
  return special == special_hosts.end() ? 1 : 1 / special->speed;
}

namespace {

Result<Cluster> parse_with(const std::string& text, const std::string& source, const Json& values) {
  const auto document = parse_toml(text, source);
  if (!document) {
    return document.error();
  }
  Json table = *document;
  table.update(values);
  const Form rate = Form::number(kMinGbps, kMaxGbps);
  const Form time = Form::number(0, kLongestUs);
  const Form cost = Form::number(0, kMaxNsPerByte);
  Fields fields(table, source);
  Cluster cluster;
  cluster.topology = read_topology(fields);
  cluster.places_servers = table.contains("servers") || table.contains("servers_per_host");
  if (const Json* channel = fields.optional("allreduce", Form::table())) {
    cluster.allreduce = read_allreduce(*channel, cluster.topology.workers(), fields);
    cluster.bandwidth_gbps = fields.get<double>("bandwidth_gbps", rate, 0);
  } else {
    cluster.bandwidth_gbps = fields.get<double>("bandwidth_gbps", rate);
  }
  cluster.latency = from_us(fields.get<double>("latency_us", time, to_us(cluster.latency)));
  cluster.reduce_ns_per_byte = fields.get("reduce_ns_per_byte", cost, cluster.reduce_ns_per_byte);
  cluster.update_ns_per_byte = fields.get("update_ns_per_byte", cost, cluster.update_ns_per_byte);
  cluster.code_ns_per_byte = fields.get("code_ns_per_byte", cost, cluster.code_ns_per_byte);
  cluster.server_threads =
      fields.get("server_threads", Form::integer(1, kMaxNodes), cluster.server_threads);
  cluster.header_bytes =
      fields.get("header_bytes", Form::integer(0, kMaxFragmentBytes), cluster.header_bytes);
  cluster.fragment_bytes =
      fields.get("fragment_bytes", Form::integer(0, kMaxFragmentBytes), cluster.fragment_bytes);
  cluster.ingress_gbps = fields.get("ingress_gbps", rate, cluster.ingress_gbps);
  read_processors(fields, cluster);
  cluster.sync = from_us(fields.get<double>("sync_us", time, to_us(cluster.sync)));
  read_differences(fields, cluster);
  if (const auto done = fields.done(); !done) {
    return done.error();
  }
  return cluster;
}

}  // namespace

Result<Cluster> parse_cluster(const std::string& text, const std::string& source) {
  return parse_with(text, source, Json::object());
}

Result<Cluster> read_cluster(const std::string& path) { return read_cluster(path, Json::object()); }

Result<Cluster> read_cluster(const std::string& path, const Json& values) {
  const auto text = read_file(path);
  return text ? parse_with(*text, path, values) : text.error();
}

std::string to_toml(const AllReduceCost& cost) {
  return fmt::format("[allreduce]\nstartup_us = {}\nns_per_byte = {}\n", to_us(cost.startup),
                     cost.ns_per_byte);
}

std::string to_toml(const Cluster& cluster) {
  const Topology& topology = cluster.topology;
  std::string toml = fmt::format("hosts = {}\nworkers_per_host = {}\n", topology.worker_hosts(),
                                 topology.workers_per_host());
  if (cluster.places_servers || topology.servers_apart() || topology.servers_per_host() > 1) {
    toml += fmt::format(
        "servers = {}\nservers_per_host = {}\n",
        topology.servers_apart() ? fmt::format("{}", topology.servers()) : "\"per-host\"",
        topology.servers_per_host());
  }
  if (cluster.bandwidth_gbps > 0) {
    toml += fmt::format("bandwidth_gbps = {}\n", cluster.bandwidth_gbps);
  }
  if (cluster.ingress_gbps > 0) {
    toml += fmt::format("ingress_gbps = {}\n", cluster.ingress_gbps);
  }
  toml += fmt::format(
      "latency_us = {}\nreduce_ns_per_byte = {}\nupdate_ns_per_byte = {}\ncode_ns_per_byte = {}\n"
      "server_threads = {}\nheader_bytes = {}\nfragment_bytes = {}\nsync_us = {}\n",
      to_us(cluster.latency), cluster.reduce_ns_per_byte, cluster.update_ns_per_byte,
      cluster.code_ns_per_byte, cluster.server_threads, cluster.header_bytes,
      cluster.fragment_bytes, to_us(cluster.sync));
  toml += fmt::format(
      "cores = {}\ncompute_cores = {}\nmessage_threads = {}\nsend_message_us = {}\n"
      "send_ns_per_byte = {}\nreceive_message_us = {}\nreceive_ns_per_byte = {}\n",
      cluster.cores, cluster.compute_cores, cluster.message_threads, to_us(cluster.sending.startup),
      cluster.sending.ns_per_byte, to_us(cluster.receiving.startup), cluster.receiving.ns_per_byte);
  toml += fmt::format("hosts_per_nic = {}\njitter = {}\n", cluster.hosts_per_nic, cluster.jitter);
  return toml + (cluster.allreduce ? to_toml(*cluster.allreduce) : "") +
         differences_to_toml(cluster);
}

}  // namespace sluice
