#include "drivers/virtual/work_time.h"

#include <algorithm>

namespace sluice {
namespace {

double bytes_of(const std::vector<Payload>& sources) {
  Bytes bytes = 0;
  for (const Payload& source : sources) {
    bytes += source.size();
  }
  return static_cast<double>(bytes);
}

// Packed sources are unpacked first; sparse ones are shorter than their range, and only their
// entries are touched. A sum that is begun is dense.
double update_ns(const Work& work, double bytes, const Cluster& cluster) {
  const auto sources = static_cast<double>(work.sources.size());
  if (!work.coded) {
    const double added = work.begun ? sources : sources - 1;
    return bytes * (added * cluster.reduce_ns_per_byte + cluster.update_ns_per_byte);
  }
  const double read = bytes_of(work.sources);
  const double touched = work.begun ? bytes : std::min(bytes, read);
  return sources * touched * cluster.code_ns_per_byte + touched * cluster.update_ns_per_byte;
}

// As many additions as an update makes; a copy of the first source stands for the update itself.
// Packed sources are unpacked, and their sum is packed.
double sum_ns(const Work& work, double bytes, const Cluster& cluster) {
  const auto sources = static_cast<double>(work.sources.size());
  if (work.coded) {
    return bytes * (sources + 1) * cluster.code_ns_per_byte;
  }
  return bytes * (work.begun ? sources + 1 : sources) * cluster.reduce_ns_per_byte;
}

double reduce_ns(const Work& work, double bytes, const Cluster& cluster) {
  const auto sources = static_cast<double>(work.sources.size());
  if (work.coded) {
    return bytes * sources * cluster.code_ns_per_byte;
  }
  return bytes * (work.fresh ? sources - 1 : sources) * cluster.reduce_ns_per_byte;
}

double nanoseconds(const Work& work, const Cluster& cluster) {
  const auto bytes = static_cast<double>(work.range.size() * kFloatBytes);
  switch (work.kind) {
    case WorkKind::kUpdate:
      return update_ns(work, bytes, cluster);
    case WorkKind::kOuterStep:
      return bytes * (work.fresh ? cluster.reduce_ns_per_byte : cluster.update_ns_per_byte);
    case WorkKind::kSum:
      return sum_ns(work, bytes, cluster);
    case WorkKind::kReduce:
      return reduce_ns(work, bytes, cluster);
    case WorkKind::kBlend:
    case WorkKind::kElastic:
    case WorkKind::kSwap:
    case WorkKind::kSwapped:
    case WorkKind::kNorm:
    case WorkKind::kOuterGradient:
    case WorkKind::kTakeOver:
      return bytes * cluster.reduce_ns_per_byte;
    case WorkKind::kEncode:
    case WorkKind::kDecode:
    case WorkKind::kChanges:
    case WorkKind::kLeftFactor:
    case WorkKind::kRightFactor:
    case WorkKind::kFromFactors:
      return bytes * cluster.code_ns_per_byte;
    case WorkKind::kMerge:
    case WorkKind::kPatch:
      return bytes_of(work.sources) * cluster.code_ns_per_byte;
  }
  return 0;
}

}  // namespace

Duration work_time(const Work& work, const Cluster& cluster) {
  if (cluster.allreduce.has_value()) {
    return Duration{0};
  }
  const Duration sync = work.kind == WorkKind::kUpdate ? cluster.sync : Duration{0};
  return from_ns(nanoseconds(work, cluster)) + sync;
}

}  // namespace sluice
