#include "session/resumption.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/check.h"
#include "formats/link_cost.h"
#include "nodes/host.h"
#include "session/checkpoints.h"
#include "session/former_hosts.h"

namespace sluice {
namespace {

constexpr const char* kAuto = "auto";

std::string where_to_look(const CheckpointSpec& spec) {
  return spec.resume == kAuto ? spec.folder : spec.resume;
}

// Whether a run with these settings can go on from it.
Result<void> check_settings(const CheckpointManifest& manifest, const CheckpointSpec& spec,
                            bool other_workers) {
  std::map<std::string, std::string> all = manifest.settings;
  all.insert(spec.settings.begin(), spec.settings.end());
  const auto value = [](const std::map<std::string, std::string>& in, const std::string& key) {
    const auto found = in.find(key);
    return found == in.end() ? "not set" : found->second;
  };
  for (const auto& [key, any] : all) {
    const bool may_differ =
        spec.about_hosts.contains(key) || (other_workers && spec.about_batches.contains(key));
    const std::string before = value(manifest.settings, key);
    const std::string now = value(spec.settings, key);
    if (!may_differ && before != now) {
      return Error(fmt::format("{} was {}, and now is {}; resume with the same", key, before, now));
    }
  }
  return {};
}

// Looks at all files that this process needs. Those of other hosts are read again, one by one, when
// their state is taken up.
Result<Resumption> load(Resumption from, const std::vector<HostId>& hosts,
                        const Strategy& strategy) {
  for (const HostId host : from.former ? former_files(*from.former, strategy) : hosts) {
    auto bytes = read_host_file(from, from.donors.contains(host) ? from.donors.at(host) : host);
    if (!bytes) {
      return bytes.error();
    }
    if (!from.former) {
      from.files.emplace_back(host, *std::move(bytes));
    }
  }
  return from;
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

// Where the workers begin, if not all at the iteration of the checkpoint.
Result<std::vector<Iteration>> starts_in(const CheckpointManifest& manifest, std::size_t workers) {
  const Json saved = manifest.measured.value("starts", Json::array());
  const Iteration most = manifest.iteration * static_cast<Iteration>(workers);
  const auto is_start = [&](const Json& one) {
    return one.is_number_integer() && one >= 0 && one <= most;
  };
  if (saved.empty()) {
    return std::vector<Iteration>();
  }
  if (saved.is_array() && saved.size() == workers && std::ranges::all_of(saved, is_start)) {
    auto starts = saved.get<std::vector<Iteration>>();
    if (mean_of(starts) == manifest.iteration) {
      return starts;
    }
  }
  return Error(fmt::format("measured: starts: should be {} iterations whose mean is {}", workers,
                           manifest.iteration));
}

// The hosts that the run had lost, if it went on without them. Each takes what the next one has.
Donors donors_in(const CheckpointManifest& manifest, const Topology& topology,
                 const Strategy& strategy) {
  const auto has_file = [&](HostId host) {
    const auto& files = manifest.files;
    const std::string name = host_file_name(host.index());
    return std::ranges::find(files, name, &CheckpointFile::name) != files.end();
  };
  std::vector<HostId> lost;
  for (std::size_t h = 0; h < topology.worker_hosts(); ++h) {
    if (!has_file(HostId(h)) &&
        why_it_ends(strategy, topology, manifest.iteration, HostId(h)).empty()) {
      lost.emplace_back(h);
    }
  }
  return donors_for(lost, topology, has_file);
}

// The leader offers one after the other, and every process looks at its own files.
Result<std::optional<Resumption>> last_sound(ProcessGroup& group, const CheckpointSpec& spec,
                                             const Topology& topology, const Strategy& strategy,
                                             const Log& log) {
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
      const auto former = former_hosts(*manifest, topology, strategy);
      if (!former) {
        return former.error().within("resume: " + path);
      }
      const bool other_workers = *former && (*former)->workers() != topology.workers();
      if (const auto fits = check_settings(*manifest, spec, other_workers); !fits) {
        return fits.error().within("resume: " + path);
      }
      const auto starts = starts_in(*manifest, topology.workers());
      auto own =
          starts ? load({.path = path,
                         .manifest = *manifest,
                         .first = starts->empty() ? manifest->iteration : std::ranges::min(*starts),
                         .starts = *starts,
                         .former = *former,
                         .donors = *former ? Donors() : donors_in(*manifest, topology, strategy)},
                        hosts_here(group, topology), strategy)
                 : starts.error();
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

// These two throw if the manifest has something else there.
Result<void> check_model(const Json& measured, const Job& job) {
  if (const auto before = measured.at("parameters").get<std::int64_t>();
      before != total_params(job.layers)) {
    return Error(fmt::format("the model had {} parameters, and now has {}", before,
                             total_params(job.layers)));
  }
  const std::string_view codec = name_of(kCodecNames, job.strategy.codec);
  if (const auto before = measured.at("codec").get<std::string>(); before != codec) {
    return Error(fmt::format("the run had codec {}, and now has {}", before, codec));
  }
  return {};
}

}  // namespace

Result<std::string> read_host_file(const Resumption& from, HostId host) {
  const std::string name = host_file_name(host.index());
  const auto& files = from.manifest.files;
  const auto file = std::ranges::find(files, name, &CheckpointFile::name);
  if (file == files.end()) {
    return Error(fmt::format("{}: has no {}", from.path.string(), name));
  }
  auto bytes = read_checked(from.path, *file);
  if (!bytes) {
    return bytes;
  }
  if (const auto tensors = parse_safetensors(std::as_bytes(std::span(*bytes))); !tensors) {
    return tensors.error().within((from.path / name).string());
  }
  return bytes;
}

std::vector<HostId> hosts_here(const ProcessGroup& group, const Topology& topology) {
  return group.own_host() ? std::vector{*group.own_host()} : all_hosts(topology);
}

Result<std::optional<Resumption>> find_checkpoint(ProcessGroup& group, const CheckpointSpec& spec,
                                                  const Topology& topology,
                                                  const Strategy& strategy, const Log& log) {
  if (spec.resume.empty()) {
    return std::optional<Resumption>();
  }
  const std::string where = where_to_look(spec);
  auto found = last_sound(group, spec, topology, strategy, log);
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
  if (group.is_leader() && *found && (*found)->former) {
    log.info(taken_up_text(*(*found)->former, topology, strategy));
  }
  if (group.is_leader() && *found) {
    for (const auto& [lost, donor] : (*found)->donors) {
      log.info(fmt::format("host {} was lost before; it goes on with what host {} had",
                           lost.index(), donor.index()));
    }
  }
  return found;
}

Json json_of(const std::vector<GivenUpSum>& sums) {
  Json all = Json::array();
  for (const GivenUpSum& sum : sums) {
    all.push_back({sum.chunk.index(), sum.begun});
  }
  return all;
}

std::vector<GivenUpSum> given_up_from(const Json& sums) {
  std::vector<GivenUpSum> all;
  for (const Json& sum : sums) {
    all.push_back({ChunkId(sum.at(0).get<std::size_t>()), sum.at(1).get<Iteration>()});
  }
  return all;
}

Json measured_of(const Job& job) {
  const Strategy& strategy = job.strategy;
  Json groups = Json::array();
  for (const LayerGroup& group : job.groups) {
    groups.push_back({group.begin, group.end});
  }
  return {{"topology", topology_text(job.topology)},
          {"hosts", json_of(job.topology)},
          {"parameters", total_params(job.layers)},
          {"slice", strategy.slice_params},
          {"join", strategy.join_params},
          {"segment", strategy.segment_params},
          {"local_aggregation", strategy.local_aggregation},
          {"collective",
           strategy.collective ? Json(name_of(kCollectiveNames, *strategy.collective)) : Json()},
          {"codec", name_of(kCodecNames, strategy.codec)},
          {"link", json_of(job.link)},
          {"groups", groups},
          {"given_up", json_of(job.given_up)}};
}

void adopt_measured(const Json& measured, Job& job) {
  Strategy& strategy = job.strategy;
  strategy.slice_params = measured.at("slice");
  strategy.join_params = measured.at("join");
  strategy.segment_params = measured.at("segment");
  strategy.local_aggregation = measured.value("local_aggregation", strategy.local_aggregation);
  const Json& collective = measured.at("collective");
  strategy.collective = collective.is_null()
                            ? std::nullopt
                            : value_of(kCollectiveNames, collective.get<std::string>());
  job.link = link_cost_from(measured.at("link"));
  job.groups.clear();
  for (const Json& group : measured.at("groups")) {
    job.groups.push_back({group.at(0), group.at(1)});
  }
  job.given_up = given_up_from(measured.value("given_up", Json::array()));
}

Result<void> take_up(const Resumption& from, Job& job) {
  const Json& measured = from.manifest.measured;
  try {
    if (const auto fits = check_model(measured, job); !fits) {
      return fits;
    }
    if (!from.former) {
      adopt_measured(measured, job);
    }
    job.first = from.first;
    job.starts = from.starts;
    job.absent = from.absent;
    return {};
  } catch (const Json::exception& fault) {
    return Error(fmt::format("what was measured is not all there: {}", fault.what()));
  }
}

}  // namespace sluice
