// What MPI alone costs: every rank sends messages to every other rank, two in flight per peer, and
// sleeps for 100 microseconds whenever nothing has moved.
//
//   mpirun ... sluice_peer_messages BYTES COUNT
//
// COUNT messages of BYTES bytes go from each rank to each other rank. Rank 0 prints JSON: the bytes
// that all ranks have sent, and the seconds that it took.

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kInFlight = 2;
constexpr auto kNap = std::chrono::microseconds(100);

// The messages of one direction between this rank and a peer.
struct Stream {
  int peer;
  bool outgoing;
  int begun = 0;
};

class Exchange {
 public:
  Exchange(int rank, int size, int bytes, int count)
      : bytes_(bytes), count_(count), out_(static_cast<std::size_t>(bytes)) {
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) {
        streams_.push_back({peer, true});
        streams_.push_back({peer, false});
      }
    }
    requests_.assign(streams_.size() * kInFlight, MPI_REQUEST_NULL);
    buffers_.assign(requests_.size(), std::vector<std::byte>(static_cast<std::size_t>(bytes)));
  }

  void run() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      begin(i);
    }
    std::vector<int> done(requests_.size());
    for (;;) {
      int completed = 0;
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &completed, done.data(),
                   MPI_STATUSES_IGNORE);
      if (completed == MPI_UNDEFINED) {
        return;
      }
      for (int i = 0; i < completed; ++i) {
        begin(static_cast<std::size_t>(done[static_cast<std::size_t>(i)]));
      }
      if (completed == 0) {
        std::this_thread::sleep_for(kNap);
      }
    }
  }

 private:
  void begin(std::size_t i) {
    Stream& stream = streams_[i / kInFlight];
    if (stream.begun == count_) {
      return;
    }
    ++stream.begun;
    if (stream.outgoing) {
      MPI_Issend(out_.data(), bytes_, MPI_BYTE, stream.peer, 0, MPI_COMM_WORLD, &requests_[i]);
    } else {
      MPI_Irecv(buffers_[i].data(), bytes_, MPI_BYTE, stream.peer, 0, MPI_COMM_WORLD,
                &requests_[i]);
    }
  }

  int bytes_;
  int count_;
  std::vector<std::byte> out_;
  std::vector<Stream> streams_;
  std::vector<MPI_Request> requests_;  // kInFlight per stream
  std::vector<std::vector<std::byte>> buffers_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int bytes = argc == 3 ? std::atoi(argv[1]) : 0;
  const int count = argc == 3 ? std::atoi(argv[2]) : 0;
  if (bytes <= 0 || count <= 0) {
    std::fprintf(stderr, "sluice_peer_messages: expected two numbers; see the source\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const auto begin = std::chrono::steady_clock::now();
  Exchange(rank, size, bytes, count).run();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  if (rank == 0) {
    std::printf("{\"bytes\": %.0f, \"seconds\": %.3f}\n", 1.0 * bytes * count * size * (size - 1),
                elapsed.count());
  }
  MPI_Finalize();
}
