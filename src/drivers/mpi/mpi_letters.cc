#include "drivers/mpi/mpi_letters.h"

#include <memory>
#include <utility>

#include "drivers/mpi/mpi_take.h"

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
  MPI_Isend(kept->data(), static_cast<int>(kept->size()), MPI_BYTE, static_cast<int>(to),
            kLetterTag, comm_, &request);
  requests_.add(request, [kept](const MPI_Status&) {});
}

void MpiLetters::send_to_all(const std::string& text) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm_, &rank);
  MPI_Comm_size(comm_, &size);
  for (int to = 0; to < size; ++to) {
    if (to != rank) {
      send(static_cast<std::size_t>(to), text);
    }
  }
}

std::optional<Letters::Letter> MpiLetters::take() {
  auto taken = take_text(comm_, kLetterTag);
  return taken ? std::optional(Letter{taken->first, std::move(taken->second)}) : std::nullopt;
}

bool MpiLetters::all_sent() {
  requests_.test();
  return requests_.empty();
}

}  // namespace sluice
