#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include "drivers/mpi/mpi_requests.h"
#include "drivers/processes/letters.h"

namespace sluice {

// Over a communicator of their own. Nobody is lost: the launcher ends all processes with one.
class MpiLetters final : public Letters {
 public:
  // All processes make one at the same time.
  MpiLetters();
  ~MpiLetters() override;
  MpiLetters(const MpiLetters&) = delete;
  MpiLetters& operator=(const MpiLetters&) = delete;

  void send(std::size_t to, std::string text) override;
  void send_to_all(const std::string& text) override;
  std::optional<Letter> take() override;
  bool all_sent() override;
  void close() override { closed_ = true; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  MpiRequests requests_;
  bool closed_ = false;
};

}  // namespace sluice
