#include "drivers/mpi/mpi_long_messages.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "drivers/processes/interfaces.h"

namespace sluice {
namespace {

// Settings of Open MPI, in the environment.
constexpr const char* kFragmentVariable = "OMPI_MCA_btl_tcp_rdma_pipeline_frag_size";
constexpr const char* kReceivingThread = "OMPI_MCA_btl_tcp_progress_thread";

}  // namespace

void tune_long_messages(const Launch& launch) {
  const std::string fragment = std::to_string(fragment_bytes(fastest_interface_gbps()));
  setenv(kFragmentVariable, fragment.c_str(), 0);
  setenv("OMPI_MCA_btl_tcp_rdma_pipeline_send_length", "4096", 0);
  setenv("OMPI_MCA_btl_tcp_rndv_eager_limit", "4096", 0);
  setenv("OMPI_MCA_btl_tcp_min_rdma_pipeline_size", "8192", 0);
  setenv("OMPI_MCA_btl_tcp_endpoint_cache", "65536", 0);
  if (launch.size_here && launch.size_here != launch.size && has_idle_cores(*launch.size_here)) {
    setenv(kReceivingThread, "1", 0);
  }
}

LongMessages long_messages_set() {
  const char* fragment = std::getenv(kFragmentVariable);
  const char* thread = std::getenv(kReceivingThread);
  return {.fragment_bytes = fragment == nullptr ? 0 : std::atoll(fragment),
          .receiving_thread = thread != nullptr && std::string_view(thread) == "1"};
}

}  // namespace sluice
