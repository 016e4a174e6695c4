#include <fmt/format.h>
#include <spdlog/version.h>
#include <toml++/toml.h>

#include <CLI/Version.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/network.h"
#include "compute/data/idx.h"
#include "compute/images/image.h"
#include "compute/torch/torch_learner.h"
#include "report/table.h"
#include "runtime/mpi/mpi_world.h"

namespace sluice::cli {
namespace {

struct Finding {
  std::string what;
  std::string state;
  std::string advice = {};  // how to get what is missing; empty if nothing is
};

std::string version(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

void add_build(std::vector<Finding>& findings) {
  findings.push_back({"sluice", SLUICE_VERSION " (" SLUICE_BUILD_TYPE ")"});
  findings.push_back({"compiler", SLUICE_COMPILER});
  findings.push_back(
      {"CLI11", version(CLI11_VERSION_MAJOR, CLI11_VERSION_MINOR, CLI11_VERSION_PATCH)});
  findings.push_back(
      {"fmt", version(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)});
  findings.push_back(
      {"nlohmann-json", version(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                NLOHMANN_JSON_VERSION_PATCH)});
  findings.push_back({"spdlog", version(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)});
  findings.push_back({"toml++", version(TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH)});
}

void add_machine(std::vector<Finding>& findings) {
  findings.push_back({"cores", fmt::format("{}", std::thread::hardware_concurrency())});
  const char* blas_threads = std::getenv("OPENBLAS_NUM_THREADS");
  findings.push_back({"OPENBLAS_NUM_THREADS", blas_threads != nullptr
                                                  ? blas_threads
                                                  : "not set; train takes one thread a worker"});
}

void add_engine(std::vector<Finding>& findings) {
  const EngineInfo engine = torch_engine();
  if (!engine.available) {
    findings.push_back({"LibTorch", "missing", engine.advice});
    return;
  }
  findings.push_back({"LibTorch", engine.version});
  findings.push_back({"BLAS", engine.blas, engine.advice});
  findings.push_back({"oneDNN", engine.onednn ? "on; train measures whether it helps" : "off"});
  findings.push_back({"operator threads", fmt::format("{}", engine.threads)});
  findings.push_back({"CUDA", engine.cuda ? "yes" : "no"});
}

void add_data(std::vector<Finding>& findings) {
  const std::filesystem::path folder(kFashionMnistFolder);
  const bool present = std::filesystem::exists(folder / "train-images-idx3-ubyte.gz") ||
                       std::filesystem::exists(folder / "train-images-idx3-ubyte");
  if (present) {
    findings.push_back({"Fashion-MNIST", folder.string()});
  } else {
    findings.push_back(
        {"Fashion-MNIST", "missing",
         "apt-get install dataset-fashion-mnist, or put its four files into a folder "
         "and pass --data-dir; --data synthetic needs none"});
  }
}

void add_images(std::vector<Finding>& findings) {
  const ImageSupport images = image_support();
  findings.push_back(
      {"images", images.libraries.empty() ? "missing" : images.libraries, images.advice});
}

void add_transports(std::vector<Finding>& findings) {
  findings.push_back({"threads", "yes"});
  const MpiInfo mpi = mpi_info();
  findings.push_back({"MPI", mpi.library.empty() ? "missing" : mpi.library, mpi.advice});
}

}  // namespace

int doctor(const Settings& settings) {
  if (settings.on("net")) {
    return check_network(settings);
  }
  std::vector<Finding> findings;
  add_build(findings);
  add_machine(findings);
  add_engine(findings);
  add_data(findings);
  add_images(findings);
  add_transports(findings);

  nlohmann::ordered_json report;
  auto missing = nlohmann::ordered_json::object();
  Table table({{}, {}});
  Table advice({{}, {}});
  for (const Finding& finding : findings) {
    report[finding.what] = finding.state;
    table.add_row({finding.what, finding.state});
    if (!finding.advice.empty()) {
      missing[finding.what] = finding.advice;
      advice.add_row({finding.what, finding.advice});
    }
  }
  report["missing"] = missing;
  if (settings.on("json")) {
    print(report);
  } else {
    print(table.render() + (missing.empty() ? "" : "\nwhat is missing, and how to get it\n") +
          advice.render());
  }
  return kOk;
}

}  // namespace sluice::cli
