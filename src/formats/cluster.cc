#include "formats/cluster.h"

#include <fmt/format.h>

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

AllReduceCost read_allreduce(const Json& table, Fields& parent) {
  Fields fields(table, parent.where() + ": allreduce");
  AllReduceCost cost;
  cost.startup = from_us(fields.get<double>("startup_us", Form::number(0, kLongestUs)));
  cost.ns_per_byte = fields.get<double>("ns_per_byte", Form::number(0, kMaxNsPerByte));
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
    cluster.allreduce = read_allreduce(*channel, fields);
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
  return toml + (cluster.allreduce ? to_toml(*cluster.allreduce) : "");
}

}  // namespace sluice
