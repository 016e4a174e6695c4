#include "drivers/mpi/mpi_start.h"

#include <mpi.h>

#include <cstdlib>

namespace sluice {
namespace {

bool is_initialised() {
  int flag = 0;
  MPI_Initialized(&flag);
  return flag != 0;
}

bool is_finalised() {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
}

// Whether this thread may use MPI while other threads run.
Result<void> check_threads() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_FUNNELED) {
    return Error(
        "MPI was initialised with MPI_THREAD_SINGLE, but Sluice uses threads: call MPI_Init_thread "
        "with MPI_THREAD_FUNNELED or higher instead of MPI_Init, or leave the initialisation to "
        "Sluice");
  }
  int main = 0;
  MPI_Is_thread_main(&main);
  if (level == MPI_THREAD_FUNNELED && main == 0) {
    return Error(
        "MPI was initialised with MPI_THREAD_FUNNELED, but by another thread than this one: use "
        "the thread that initialised MPI, or ask MPI_Init_thread for MPI_THREAD_SERIALIZED or "
        "higher");
  }
  return {};
}

// Finalising waits for the other processes. A process that exits with a failure must not finalise:
// the others may be waiting for it, and the launcher ends them when it sees a process leave
// unfinalised.
void finalise_at_exit(int status, void* /*unused*/) {
  if (status == 0 && !is_finalised()) {
    MPI_Finalize();
  }
}

}  // namespace

Result<MpiStart> start_mpi(MpiLife life, const std::function<void()>& tune) {
  if (is_finalised()) {
    return Error(
        "MPI has been finalised in this process and cannot be started again: call MPI_Finalize "
        "after the last use of Sluice");
  }
  if (is_initialised()) {
    const auto fit = check_threads();
    return fit ? Result<MpiStart>(MpiStart::kBefore) : fit.error();
  }
  tune();
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (life == MpiLife::kProcess) {
    on_exit(finalise_at_exit, nullptr);
  }
  if (provided < MPI_THREAD_FUNNELED) {
    return Error("this MPI does not support programs with threads; use one that does");
  }
  return MpiStart::kHere;
}

bool program_runs_mpi() {
  if (!is_initialised() || is_finalised()) {
    return false;
  }
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size > 1;
}

}  // namespace sluice
