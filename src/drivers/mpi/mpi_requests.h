#pragma once

#include <mpi.h>

#include <functional>
#include <utility>
#include <vector>

namespace sluice {

// Non-blocking operations in flight, each with a function to call when it is complete.
class MpiRequests {
 public:
  using Done = std::function<void(const MPI_Status&)>;

  void add(MPI_Request request, Done done) {
    requests_.push_back(request);
    dones_.push_back(std::move(done));
  }

  bool empty() const { return requests_.empty(); }
  std::size_t size() const { return requests_.size(); }

  // Cancels operations that have not begun; their functions are not called.
  void cancel() {
    for (MPI_Request& request : requests_) {
      MPI_Cancel(&request);
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
    dones_.clear();
  }

  // Lets MPI move what is in flight, and calls the functions of all operations that are complete;
  // these may add further operations. True if any was complete.
  bool test() {
    // Open MPI looks first and lets its messages move only if nothing was complete.
    return !requests_.empty() && (complete() || collect());
  }

  // The same for operations that are complete already.
  bool collect() {
    if (requests_.empty()) {
      return false;
    }
    // With one that is complete Open MPI does not ask the kernel for news.
    MPI_Request at_once = MPI_REQUEST_NULL;
    MPI_Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &at_once);
    add(at_once, nullptr);
    return complete();
  }

 private:
  bool complete() {
    int completed = 0;
    indices_.resize(requests_.size());
    statuses_.resize(requests_.size());
    MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &completed, indices_.data(),
                 statuses_.data());
    std::vector<std::pair<Done, MPI_Status>> due;
    for (int i = 0; i < completed; ++i) {
      Done& done = dones_[static_cast<std::size_t>(indices_[i])];
      if (done) {
        due.emplace_back(std::move(done), statuses_[i]);
      }
    }
    remove_completed();
    for (const auto& [done, status] : due) {
      done(status);
    }
    return !due.empty();
  }

  void remove_completed() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] != MPI_REQUEST_NULL) {
        requests_[kept] = requests_[i];
        dones_[kept] = std::move(dones_[i]);
        ++kept;
      }
    }
    requests_.resize(kept);
    dones_.resize(kept);
  }

  std::vector<MPI_Request> requests_;
  std::vector<Done> dones_;  // of the same operations
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace sluice
