#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace sluice {

// The next text with this tag that has come from any rank, and that rank; none: there is none yet.
inline std::optional<std::pair<std::size_t, std::string>> take_text(MPI_Comm comm, int tag) {
  int here = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};
  MPI_Improbe(MPI_ANY_SOURCE, tag, comm, &here, &message, &status);
  if (here == 0) {
    return std::nullopt;
  }
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  MPI_Mrecv(text.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  return std::pair{static_cast<std::size_t>(status.MPI_SOURCE), std::move(text)};
}

}  // namespace sluice
