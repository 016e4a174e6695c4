#include "session/resumption.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "base/check.h"
#include "state/saved_state.h"

namespace sluice {
namespace {

constexpr const char* kAuto = "auto";

std::string where_to_look(const CheckpointSpec& spec) {
  return spec.resume == kAuto ? spec.folder : spec.resume;
}

std::string topology_text(const Topology& topology) {
  return fmt::format(
      "{} hosts with {} workers each, {} hosts of servers with {} each, {} workers per machine",
      topology.worker_hosts(), topology.workers_per_host(),
      topology.hosts() - topology.worker_hosts(), topology.servers_per_host(),
      topology.workers_per_machine());
}

// Whether a run with these settings and hosts can go on from it.
Result<void> check_fits(const CheckpointManifest& manifest, const CheckpointSpec& spec,
                        const Topology& topology) {
  std::map<std::string, std::string> all = manifest.settings;
  all.insert(spec.settings.begin(), spec.settings.end());
  const auto value = [](const std::map<std::string, std::string>& in, const std::string& key) {
    const auto found = in.find(key);
    return found == in.end() ? "not set" : found->second;
  };
  for (const auto& [key, any] : all) {
    const std::string before = value(manifest.settings, key);
    const std::string now = value(spec.settings, key);
    if (before != now) {
      return Error(fmt::format("{} was {}, and now is {}; resume with the same", key, before, now));
    }
  }
  if (const std::string before = manifest.measured.value("topology", "");
      before != topology_text(topology)) {
    return Error(fmt::format("the run had {}, and now has {}; resume on as many", before,
                             topology_text(topology)));
  }
  return {};
}

// The files of these hosts, if they are sound.
Result<Resumption> load(const std::filesystem::path& path, CheckpointManifest manifest,
                        const std::vector<HostId>& hosts) {
  Resumption loaded{.path = path, .manifest = std::move(manifest), .files = {}};
  for (const HostId host : hosts) {
    const std::string name = host_file_name(host.index());
    const auto& files = loaded.manifest.files;
    const auto file = std::ranges::find(files, name, &CheckpointFile::name);
    if (file == files.end()) {
      return Error(fmt::format("{}: has no {}", path.string(), name));
    }
    auto bytes = read_checked(path, *file);
    if (!bytes) {
      return bytes.error();
    }
    if (const auto tensors = parse_safetensors(std::as_bytes(std::span(*bytes))); !tensors) {
      return tensors.error().within((path / name).string());
    }
    loaded.files.emplace_back(host, *std::move(bytes));
  }
  return loaded;
}

// The first reason that a process has against a checkpoint; empty if none has any.
std::string first_fault(ProcessGroup& group, const std::string& own) {
  std::string first;
  for (const std::string& other : group.to_leader(own, "the soundness of a checkpoint")) {
    first = first.empty() ? other : first;
  }
  return group.from_leader(first, "the soundness of a checkpoint");
}

// The path and the manifest of a checkpoint, or why it has none; null if there is no more.
Json offer(ProcessGroup& group, const std::filesystem::path* path) {
  Json offered;
  if (path != nullptr) {
    const auto read = read_manifest(*path);
    offered = {{"path", path->string()},
               {"manifest", read ? to_text(*read) : ""},
               {"fault", read ? "" : read.error().message()}};
  }
  return Json::parse(group.from_leader(offered.dump(), "a checkpoint"));
}

// The leader offers one after the other, and every process looks at its own files.
Result<std::optional<Resumption>> last_sound(ProcessGroup& group, const CheckpointSpec& spec,
                                             const Topology& topology, const Log& log) {
  const auto paths = group.is_leader() ? checkpoints_in(where_to_look(spec))
                                       : std::vector<std::filesystem::path>();
  for (std::size_t next = 0;; ++next) {
    const Json offered = offer(group, next < paths.size() ? &paths[next] : nullptr);
    if (offered.is_null()) {
      return std::optional<Resumption>();
    }
    std::string fault = offered.at("fault");
    std::optional<Resumption> loaded;
    if (fault.empty()) {
      const std::string path = offered.at("path");
      const auto manifest = manifest_from(offered.at("manifest").get<std::string>());
      check(static_cast<bool>(manifest), "the leader has read the manifest");
      if (const auto fits = check_fits(*manifest, spec, topology); !fits) {
        return fits.error().within("resume: " + path);
      }
      auto own = load(path, *manifest, hosts_here(group, topology));
      fault = own ? "" : own.error().message();
      if (own) {
        loaded = *std::move(own);
      }
    }
    fault = first_fault(group, fault);
    if (fault.empty()) {
      return loaded;
    }
    if (group.is_leader()) {
      log.warn("not a sound checkpoint: " + fault);
    }
  }
}

Json json_of(const LinkCost& link) {
  return {{"startup_ps", link.startup.count()},
          {"ns_per_byte", link.ns_per_byte},
          {"reduce_ns_per_byte", link.reduce_ns_per_byte},
          {"message_ps", link.message.count()},
          {"code_ns_per_byte", link.code_ns_per_byte}};
}

LinkCost link_from(const Json& json) {
  return {.startup = Duration(json.at("startup_ps").get<std::int64_t>()),
          .ns_per_byte = json.at("ns_per_byte"),
          .reduce_ns_per_byte = json.at("reduce_ns_per_byte"),
          .message = Duration(json.at("message_ps").get<std::int64_t>()),
          .code_ns_per_byte = json.at("code_ns_per_byte")};
}

}  // namespace

std::vector<HostId> hosts_here(const ProcessGroup& group, const Topology& topology) {
  if (group.own_host()) {
    return {*group.own_host()};
  }
  std::vector<HostId> hosts;
  for (std::size_t h = 0; h < topology.hosts(); ++h) {
    hosts.emplace_back(h);
  }
  return hosts;
}

Result<std::optional<Resumption>> find_checkpoint(ProcessGroup& group, const CheckpointSpec& spec,
                                                  const Topology& topology, const Log& log) {
  if (spec.resume.empty()) {
    return std::optional<Resumption>();
  }
  const std::string where = where_to_look(spec);
  auto found = last_sound(group, spec, topology, log);
  if (!found) {
    return found;
  }
  if (!*found && spec.resume != kAuto) {
    return Error(fmt::format("resume: there is no sound checkpoint in {}", where));
  }
  if (group.is_leader()) {
    log.info(*found ? fmt::format("resuming from {} after {} iterations", (*found)->path.string(),
                                  (*found)->manifest.iteration)
                    : fmt::format("no sound checkpoint in {}: starting from the beginning", where));
  }
  return found;
}

Json measured_of(const Job& job) {
  const Strategy& strategy = job.strategy;
  Json groups = Json::array();
  for (const LayerGroup& group : job.groups) {
    groups.push_back({group.begin, group.end});
  }
  return {{"topology", topology_text(job.topology)},
          {"parameters", total_params(job.layers)},
          {"slice", strategy.slice_params},
          {"join", strategy.join_params},
          {"segment", strategy.segment_params},
          {"credit", strategy.credit},
          {"peer_credit", strategy.peer_credit},
          {"collective",
           strategy.collective ? Json(name_of(kCollectiveNames, *strategy.collective)) : Json()},
          {"codec", name_of(kCodecNames, strategy.codec)},
          {"link", json_of(job.link)},
          {"groups", groups}};
}

Result<void> adopt_measured(const Json& measured, Job& job) {
  try {
    if (const auto before = measured.at("parameters").get<std::int64_t>();
        before != total_params(job.layers)) {
      return Error(fmt::format("the model had {} parameters, and now has {}", before,
                               total_params(job.layers)));
    }
    Strategy& strategy = job.strategy;
    if (const auto before = measured.at("codec").get<std::string>();
        before != name_of(kCodecNames, strategy.codec)) {
      return Error(fmt::format("the run had codec {}, and now has {}", before,
                               name_of(kCodecNames, strategy.codec)));
    }
    strategy.slice_params = measured.at("slice");
    strategy.join_params = measured.at("join");
    strategy.segment_params = measured.at("segment");
    strategy.credit = measured.at("credit");
    strategy.peer_credit = measured.at("peer_credit");
    const Json& collective = measured.at("collective");
    strategy.collective = collective.is_null()
                              ? std::nullopt
                              : value_of(kCollectiveNames, collective.get<std::string>());
    job.link = link_from(measured.at("link"));
    job.groups.clear();
    for (const Json& group : measured.at("groups")) {
      job.groups.push_back({group.at(0), group.at(1)});
    }
    return {};
  } catch (const Json::exception& fault) {
    return Error(fmt::format("what was measured is not all there: {}", fault.what()));
  }
}

void restore(const Resumption& from, const Assembly& assembly, TrainingState& state) {
  for (const auto& [host, bytes] : from.files) {
    const auto tensors = parse_safetensors(std::as_bytes(std::span(bytes)));
    const auto restored =
        tensors ? restore_state(*tensors, {.state = state,
                                           .topology = assembly.job.topology,
                                           .chunks = *assembly.chunks,
                                           .has_servers = assembly.job.strategy.uses_servers(),
                                           .host = host})
                : Result<void>(tensors.error());
    if (!restored) {
      throw std::runtime_error(fmt::format("resume: {}: {}",
                                           (from.path / host_file_name(host.index())).string(),
                                           restored.error().message()));
    }
  }
}

}  // namespace sluice
