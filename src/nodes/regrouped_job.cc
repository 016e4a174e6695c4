#include "nodes/regrouped_job.h"

#include <utility>

namespace sluice {

Job job_without(std::vector<HostId> absent, std::vector<GivenUpSum> given_up, Job job,
                Iteration first) {
  job.absent = std::move(absent);
  job.given_up = std::move(given_up);
  job.first = first;
  job.starts.clear();
  return job;
}

Job job_with(std::span<const PeerJoined> joined, Job job, Iteration first) {
  for (const PeerJoined& one : joined) {
    std::erase(job.absent, one.host);
  }
  job.first = first;
  return job;
}

}  // namespace sluice
