#include "drivers/mpi/mpi_collectives.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace sluice {
namespace {

// MPI counts in 32 bits.
constexpr std::size_t kBlock = std::size_t{1} << 27U;

MPI_Datatype datatype_of(NumberType type) {
  switch (type) {
    case NumberType::kFloat32:
      return MPI_FLOAT;
    case NumberType::kFloat64:
      return MPI_DOUBLE;
    case NumberType::kInt8:
      return MPI_INT8_T;
    case NumberType::kUint8:
      return MPI_UINT8_T;
    case NumberType::kInt16:
      return MPI_INT16_T;
    case NumberType::kInt32:
      return MPI_INT32_T;
    case NumberType::kInt64:
      return MPI_INT64_T;
  }
  fail_check("there is no such type");
}

MPI_Op operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return MPI_SUM;
    case Reduction::kMin:
      return MPI_MIN;
    case Reduction::kMax:
      return MPI_MAX;
    case Reduction::kProduct:
      return MPI_PROD;
  }
  fail_check("there is no such reduction");
}

void finish(std::vector<MPI_Request>& requests, const Waiting& wait) {
  wait([&] {
    int all = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE);
    return all != 0;
  });
}

int block_at(std::size_t at, std::size_t size) {
  return static_cast<int>(std::min(kBlock, size - at));
}

void begin_broadcast(MPI_Comm comm, int root, char* bytes, std::size_t size,
                     std::vector<MPI_Request>& requests) {
  for (std::size_t at = 0; at < size; at += kBlock) {
    MPI_Ibcast(bytes + at, block_at(at, size), MPI_BYTE, root, comm,
               &requests.emplace_back(MPI_REQUEST_NULL));
  }
}

}  // namespace

void all_reduce(MPI_Comm comm, const Numbers& numbers, Reduction reduction, const Waiting& wait) {
  const MPI_Datatype type = datatype_of(numbers.type);
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  auto* data = static_cast<char*>(numbers.data);
  std::vector<MPI_Request> requests;
  for (std::size_t at = 0; at < numbers.count; at += kBlock) {
    MPI_Iallreduce(MPI_IN_PLACE, data + at * static_cast<std::size_t>(bytes),
                   block_at(at, numbers.count), type, operation_of(reduction), comm,
                   &requests.emplace_back(MPI_REQUEST_NULL));
  }
  finish(requests, wait);
}

void broadcast_from(MPI_Comm comm, std::size_t root, std::span<std::byte> bytes,
                    const Waiting& wait) {
  std::vector<MPI_Request> requests;
  begin_broadcast(comm, static_cast<int>(root), reinterpret_cast<char*>(bytes.data()), bytes.size(),
                  requests);
  finish(requests, wait);
}

std::vector<std::string> all_gather(MPI_Comm comm, const std::string& own, const Waiting& wait) {
  int size = 1;
  int rank = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  const std::uint64_t length = own.size();
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size));
  std::vector<MPI_Request> requests(1, MPI_REQUEST_NULL);
  MPI_Iallgather(&length, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, comm, requests.data());
  finish(requests, wait);
  requests.clear();
  std::vector<std::string> all(lengths.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    all[r] = r == static_cast<std::size_t>(rank) ? own : std::string(lengths[r], '\0');
    begin_broadcast(comm, static_cast<int>(r), all[r].data(), all[r].size(), requests);
  }
  finish(requests, wait);
  return all;
}

}  // namespace sluice
