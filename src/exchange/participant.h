#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drivers/processes/launch.h"
#include "drivers/processes/numbers.h"
#include "exchange/call_agreement.h"
#include "exchange/service_thread.h"

namespace sluice {

class GradientExchange;
class Recording;

// This process among those of its job, for a program with a training loop of its own: it was
// started alone, or by mpirun, srun or similar. One in a process. All calls come from one thread at
// a time, except abort(). Those that say "collective" are made by all processes in the same order.
// Gradient exchanges go on meanwhile.
class Participant {
 public:
  // Joins the others. The program may have initialised MPI itself, for several threads; else `life`
  // sets how long MPI runs.
  explicit Participant(MpiLife life = MpiLife::kWorld);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  std::size_t rank() const { return rank_; }
  std::size_t size() const { return size_; }
  std::size_t local_rank() const { return local_rank_; }  // among those of this machine
  std::size_t local_size() const { return local_size_; }

  // Collective. If the processes make different calls, all of them throw.
  void barrier();
  void all_reduce(const Numbers& numbers, Reduction reduction);
  void broadcast(std::span<std::byte> bytes, std::size_t root);
  std::string broadcast_text(const std::string& text, std::size_t root);  // lengths may differ
  std::vector<std::string> all_gather(const std::string& text);           // by rank
  // From join() to end_join() this process takes part in the collective calls of others with zeros,
  // and makes none. end_join() returns when all processes have joined. A call that cannot do
  // without this process throws in those that make it.
  void join();
  void end_join();
  // Collective, and the last call of all. Ends the exchanges and writes their records; in rank 0 it
  // throws if that fails.
  void leave();

  // Ends all processes of the job, from any thread. Print the reason first.
  [[noreturn]] void abort(int code);

 private:
  friend class GradientExchange;

  // If there are others, has all agree on the call, and does the work.
  void together(const CollectiveCall& call, const ServiceThread::Task& work);
  void close_records(ProcessGroup& group);

  std::size_t rank_ = 0;
  std::size_t size_ = 1;
  std::size_t local_rank_ = 0;
  std::size_t local_size_ = 1;
  std::size_t per_machine_ = 1;  // as in a roster
  std::atomic<bool> joined_ = false;
  std::vector<std::string> hosts_;  // names of machines, by rank
  std::vector<GradientExchange*> exchanges_;
  std::vector<std::shared_ptr<Recording>> recordings_;  // in the order of their exchanges
  std::string unwritten_;                               // why a record could not be written
  std::unique_ptr<ServiceThread> thread_;
};

}  // namespace sluice
