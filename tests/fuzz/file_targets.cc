// Readers of files.
#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "cli/settings.h"
#include "data/cifar.h"
#include "data/corpus.h"
#include "data/idx.h"
#include "data/npy.h"
#include "formats/checkpoint.h"
#include "formats/cluster.h"
#include "formats/faults.h"
#include "formats/profile.h"
#include "formats/safetensors.h"
#include "formats/study.h"
#include "fuzz/target.h"

namespace sluice::fuzz {
namespace {

std::string file_with(const std::string& input, const std::filesystem::path& path) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << input;
  return path.string();
}

std::string idx_of(std::string_view type, const std::string& sizes, const std::string& values) {
  return std::string(2, '\0') + std::string(type) + sizes + values;
}

constexpr std::string_view kProfile = R"({"name": "two", "batch": 4, "layers": [
  {"name": "a", "params": 10, "forward_us": 5.5, "backward_us": 7},
  {"name": "b", "params": 200, "forward_us": 1, "backward_us": 2}]})";
constexpr std::string_view kCluster =
    "hosts = 4\nworkers_per_host = 1\nbandwidth_gbps = 1.5\nlatency_us = 20\n[[host]]\nindex = "
    "1\nspeed = 0.5\n";
constexpr std::string_view kFaults =
    "detect_s = 2\nrestart_s = 30\nkill_every_h = 100\niterations = 5000\n[[fault]]\nkind = "
    "\"kill\"\nhost = 1\nat_s = 2.5\n[[fault]]\nkind = \"slow-link\"\nhost = 0\nat_s = "
    "1\nfor_s = 3\nfactor = 10\n";
constexpr std::string_view kConfig =
    "preset = \"p3\"\nlr = 0.1\nbatch = 32\nslice = 50000\nmodel = \"mlp\"\nepochs = 2\n";
constexpr std::string_view kStudy = R"(cluster = "c.toml"
profile = "p.json"
sweep = "preset=p3,kvstore bandwidth=1,4"
[study]
title = "A study"
paper = "none"
quick.iterations = 3
)";

std::vector<std::string> idx_seeds() {
  const std::string sizes{'\0', '\0', '\0', '\2', '\0', '\0', '\0', '\3', '\0', '\0', '\0', '\1'};
  return {idx_of("\x08\x03", sizes, "abcdef")};
}

std::vector<std::string> npy_seeds() {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
  header.resize(117, ' ');
  header += '\n';
  const std::string magic("\x93NUMPY\x01\x00", 8);
  return {magic + std::string{static_cast<char>(header.size()), '\0'} + header +
          std::string(16, '\1')};
}

Answer read_npy_file(const std::string& input, const std::filesystem::path& folder) {
  return answer_of(read_npy(file_with(input, folder / "a.npy")));
}

std::vector<std::string> cifar_seeds() {
  const std::string pixels(3072, '\x55');
  const std::string label{'\1', '\3'};
  return {label + pixels + label + pixels};
}

Answer read_cifar(const std::string& input, const std::filesystem::path& folder) {
  for (const char* name : {"train.bin", "test.bin"}) {
    file_with(input, folder / name);
  }
  return answer_of(read_cifar_folder(folder.string(), Cifar::k100));
}

std::vector<std::string> corpus_seeds() {
  return {"the cat sat\na dog\n\nthe end of it all\n", "eins zwei drei\nvier\nfunf\n"};
}

Answer read_text(const std::string& input, const std::filesystem::path& folder) {
  for (const char* name : {"train.en", "train.de", "test.en", "test.de"}) {
    file_with(input, folder / name);
  }
  return answer_of(read_corpus({.folder = folder.string(), .source = "en", .target = "de"}));
}

std::vector<std::string> manifest_seeds() {
  return {to_text({.iteration = 20,
                   .version = "1",
                   .settings = {{"lr", "0.1"}},
                   .measured = Json{{"slice", 5}},
                   .files = {{"host-0.safetensors", {}}}})};
}

std::vector<std::string> safetensors_seeds() {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]}})";
  return {static_cast<char>(header.size()) + std::string(7, '\0') + header + std::string(16, '\1')};
}

constexpr std::array kFileTargets{
    Target{"manifest", manifest_seeds,
           [](const std::string& input, const std::filesystem::path& /*folder*/) {
             return answer_of(manifest_from(input));
           }},
    Target{"safetensors", safetensors_seeds,
           [](const std::string& input, const std::filesystem::path& /*folder*/) {
             return answer_of(parse_safetensors(std::as_bytes(std::span(input))));
           }},
    Target{"profile", [] { return std::vector{std::string(kProfile)}; },
           [](const std::string& input, const std::filesystem::path& /*folder*/) {
             return answer_of(parse_profile(input, "profile"));
           }},
    Target{"cluster", [] { return std::vector{std::string(kCluster)}; },
           [](const std::string& input, const std::filesystem::path& /*folder*/) {
             return answer_of(parse_cluster(input, "cluster"));
           }},
    Target{"faults", [] { return std::vector{std::string(kFaults)}; },
           [](const std::string& input, const std::filesystem::path& /*folder*/) {
             return answer_of(parse_faults(input, "faults", 4));
           }},
    Target{"config", [] { return std::vector{std::string(kConfig)}; },
           [](const std::string& input, const std::filesystem::path& folder) {
             return answer_of(cli::Settings::resolve(cli::Command::kTrain, {},
                                                     file_with(input, folder / "run.toml")));
           }},
    Target{"study", [] { return std::vector{std::string(kStudy)}; },
           [](const std::string& input, const std::filesystem::path& folder) {
             return answer_of(read_study(file_with(input, folder / "study.toml")));
           }},
    Target{"idx", idx_seeds,
           [](const std::string& input, const std::filesystem::path& folder) {
             return answer_of(read_idx(file_with(input, folder / "a.idx"), 3));
           }},
    Target{"cifar", cifar_seeds, read_cifar},
    Target{"corpus", corpus_seeds, read_text},
    Target{"npy", npy_seeds, read_npy_file},
};

}  // namespace

std::span<const Target> file_targets() { return kFileTargets; }

std::filesystem::path make_folder() {
  const std::filesystem::path memory = "/dev/shm";
  const auto parent =
      std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
  std::string name = (parent / "sluice-fuzz-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a folder in " + parent.string());
  }
  return name;
}

void check_answer(const Answer& answer) {
  if (!answer.taken && answer.message.empty()) {
    throw std::runtime_error("an input was refused without a message");
  }
}

std::vector<Target> all_targets() {
  std::vector<Target> all(file_targets().begin(), file_targets().end());
  all.insert(all.end(), wire_targets().begin(), wire_targets().end());
#ifdef SLUICE_HAS_IMAGES
  all.insert(all.end(), image_targets().begin(), image_targets().end());
#endif
  return all;
}

}  // namespace sluice::fuzz
