#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace sluice {

// The first rank of a communicator with which this process can share memory. Collective: returns
// when all have called it.
inline int first_sharing_memory(MPI_Comm comm) {
  MPI_Comm here = MPI_COMM_NULL;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  int first = 0;
  MPI_Comm_rank(comm, &first);
  MPI_Bcast(&first, 1, MPI_INT, 0, here);
  MPI_Comm_free(&here);
  return first;
}

// Shared memory of all processes of a communicator: an area of the same size for each, with the
// given alignment. The processes must be able to share memory.
class MpiWindow {
 public:
  // Collective: returns when all have called it.
  MpiWindow(MPI_Comm comm, std::size_t area_bytes, std::size_t alignment) {
    void* own = nullptr;
    MPI_Win_allocate_shared(static_cast<MPI_Aint>(area_bytes + alignment), 1, MPI_INFO_NULL, comm,
                            &own, &window_);
    int members = 1;
    MPI_Comm_size(comm, &members);
    for (int m = 0; m < members; ++m) {
      MPI_Aint bytes = 0;
      int unit = 1;
      void* area = nullptr;
      MPI_Win_shared_query(window_, m, &bytes, &unit, static_cast<void*>(&area));
      // Whole pages are mapped, so all processes skip the same number of bytes.
      auto space = static_cast<std::size_t>(bytes);
      areas_.push_back(static_cast<std::byte*>(std::align(alignment, area_bytes, area, space)));
    }
  }
  MpiWindow(const MpiWindow&) = delete;
  MpiWindow& operator=(const MpiWindow&) = delete;
  ~MpiWindow() = default;

  // By rank.
  const std::vector<std::byte*>& areas() const { return areas_; }
  // Collective: returns when all have called it. A broken run does not free its windows; they end
  // with its processes.
  void free() { MPI_Win_free(&window_); }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte*> areas_;
};

}  // namespace sluice
