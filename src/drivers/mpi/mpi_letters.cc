#include "drivers/mpi/mpi_letters.h"

#include <memory>
#include <utility>

namespace sluice {
namespace {

constexpr int kLetterTag = 1;

}  // namespace

MpiLetters::MpiLetters() { MPI_Comm_dup(MPI_COMM_WORLD, &comm_); }

MpiLetters::~MpiLetters() {
  if (closed_) {
    MPI_Comm_free(&comm_);
  }
}

void MpiLetters::send(std::size_t to, std::string text) {
  const auto kept = std::make_shared<std::string>(std::move(text));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(kept->data(), static_cast<int>(kept->size()), MPI_CHAR, static_cast<int>(to),
            kLetterTag, comm_, &request);
  requests_.add(request, [kept](const MPI_Status&) {});
}

std::optional<Letters::Letter> MpiLetters::take() {
  int here = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};
  MPI_Improbe(MPI_ANY_SOURCE, kLetterTag, comm_, &here, &message, &status);
  if (here == 0) {
    return std::nullopt;
  }
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  std::string text(static_cast<std::size_t>(size), '\0');
  MPI_Mrecv(text.data(), size, MPI_CHAR, &message, MPI_STATUS_IGNORE);
  return Letter{static_cast<std::size_t>(status.MPI_SOURCE), std::move(text)};
}

bool MpiLetters::all_sent() {
  requests_.test();
  return requests_.empty();
}

}  // namespace sluice
