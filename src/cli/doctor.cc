#include <fmt/format.h>
#include <spdlog/version.h>
#include <toml++/toml.h>

#include <CLI/Version.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/network.h"
#include "data/idx.h"
#include "data/images/image.h"
#include "drivers/mpi/mpi_world.h"
#include "drivers/processes/launch.h"
#include "drivers/realtime/processor.h"
#include "report/table.h"
#include "torch/torch_learner.h"

namespace sluice::cli {
namespace {

struct Part {
  std::string what;
  std::string state;
  std::string advice = {};  // if it is missing or does not fit: what to do
};

std::string version(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

void add_build(std::vector<Part>& parts) {
  parts.push_back({"sluice", SLUICE_VERSION " (" SLUICE_BUILD_TYPE ")"});
  parts.push_back({"compiler", SLUICE_COMPILER});
  parts.push_back(
      {"CLI11", version(CLI11_VERSION_MAJOR, CLI11_VERSION_MINOR, CLI11_VERSION_PATCH)});
  parts.push_back(
      {"fmt", version(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)});
  parts.push_back(
      {"nlohmann-json", version(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                NLOHMANN_JSON_VERSION_PATCH)});
  parts.push_back({"spdlog", version(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)});
  parts.push_back({"toml++", version(TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH)});
}

void add_machine(std::vector<Part>& parts) {
  parts.push_back({"cores", fmt::format("{}", usable_cores())});
  const char* blas_threads = std::getenv("OPENBLAS_NUM_THREADS");
  parts.push_back({"OPENBLAS_NUM_THREADS", blas_threads != nullptr
                                               ? blas_threads
                                               : "not set; train uses one thread per worker"});
}

void add_engine(std::vector<Part>& parts) {
  const EngineInfo engine = torch_engine();
  if (!engine.available) {
    parts.push_back({"LibTorch", "missing", engine.advice});
    return;
  }
  parts.push_back({"LibTorch", engine.version});
  parts.push_back({"BLAS", engine.blas, engine.advice});
  parts.push_back({"oneDNN", engine.onednn ? "on; train measures whether it helps" : "off"});
  parts.push_back({"operator threads", fmt::format("{}", engine.threads)});
  parts.push_back({"CUDA", engine.cuda ? "yes" : "no"});
}

void add_data(std::vector<Part>& parts) {
  const std::filesystem::path folder(kFashionMnistFolder);
  const bool present = std::filesystem::exists(folder / "train-images-idx3-ubyte.gz") ||
                       std::filesystem::exists(folder / "train-images-idx3-ubyte");
  if (present) {
    parts.push_back({"Fashion-MNIST", folder.string()});
  } else {
    parts.push_back({"Fashion-MNIST", "missing",
                     "apt-get install dataset-fashion-mnist, or put its four files into a folder "
                     "and pass --data-dir; --data synthetic needs none"});
  }
}

void add_images(std::vector<Part>& parts) {
  const ImageSupport images = image_support();
  parts.push_back(
      {"images", images.libraries.empty() ? "missing" : images.libraries, images.advice});
}

// docs/reliability.md has the details.
std::string listens(const MpiInfo& mpi) {
  const std::string hub =
      "launch --transport tcp does on 127.0.0.1, or on the address from which it reaches other "
      "hosts, and so does a rank that gives another one its state, or whose link is measured";
  return "nothing on threads; each rank of several does while all connect, on the address that it "
         "uses with the others; " +
         hub + (mpi.library.empty() ? "" : "; MPI does under a process manager");
}

void add_transports(std::vector<Part>& parts) {
  parts.push_back({"threads", "yes"});
  const MpiInfo mpi = mpi_info();
  parts.push_back({"MPI", mpi.library.empty() ? "missing" : mpi.library, mpi.advice});
  parts.push_back({"listens", listens(mpi)});
  const auto launch = find_launch();
  if (!launch) {
    parts.push_back({"process manager", "none"});
    return;
  }
  const std::string of = launch->size ? fmt::format(" of {}", *launch->size) : "";
  parts.push_back({"process manager", fmt::format("{}: rank {}{}", launch->by, launch->rank, of),
                   misfit(launch->pmi, mpi.library).value_or("")});
}

}  // namespace

int doctor(const Settings& settings) {
  if (settings.on("net")) {
    return check_network(settings);
  }
  std::vector<Part> parts;
  add_build(parts);
  add_machine(parts);
  add_data(parts);
  add_images(parts);
  add_transports(parts);
  add_engine(parts);  // last: it loads LibTorch

  nlohmann::ordered_json report;
  auto missing = nlohmann::ordered_json::object();
  Table table({{}, {}});
  Table advice({{}, {}});
  for (const Part& part : parts) {
    report[part.what] = part.state;
    table.add_row({part.what, part.state});
    if (!part.advice.empty()) {
      missing[part.what] = part.advice;
      advice.add_row({part.what, part.advice});
    }
  }
  report["missing"] = missing;
  if (settings.on("json")) {
    print(report);
  } else {
    print(table.render() +
          (missing.empty() ? "" : "\nwhat is missing or does not fit, and what to do\n") +
          advice.render());
  }
  return kOk;
}

}  // namespace sluice::cli
