// The Python module sluice._C. sluice/torch wraps it; nobody else uses it.

#include <ATen/ops/empty.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint.h"
#include "exchange/aborted.h"
#include "exchange/exchange_strategy.h"
#include "exchange/gradient_exchange.h"
#include "exchange/participant.h"
#include "formats/cluster.h"
#include "formats/profile.h"
#include "reducer.h"
#include "session/preset_simulation.h"

namespace py = pybind11;
using sluice::GradientExchange;
using sluice::Participant;
using sluice::python::Place;
using sluice::python::Reducer;

namespace {

using NoGil = py::call_guard<py::gil_scoped_release>;

const std::map<at::ScalarType, sluice::NumberType> kTypes{
    {at::kFloat, sluice::NumberType::kFloat32}, {at::kDouble, sluice::NumberType::kFloat64},
    {at::kChar, sluice::NumberType::kInt8},     {at::kByte, sluice::NumberType::kUint8},
    {at::kShort, sluice::NumberType::kInt16},   {at::kInt, sluice::NumberType::kInt32},
    {at::kLong, sluice::NumberType::kInt64}};

const std::map<std::string, sluice::Reduction> kReductions{
    {"sum", sluice::Reduction::kSum},
    {"min", sluice::Reduction::kMin},
    {"max", sluice::Reduction::kMax},
    {"product", sluice::Reduction::kProduct}};

void check_memory(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu() || !tensor.is_contiguous()) {
    throw std::invalid_argument("expected a contiguous tensor in host memory");
  }
}

void all_reduce(Participant& self, const at::Tensor& tensor, const std::string& reduction) {
  check_memory(tensor);
  const auto type = kTypes.find(tensor.scalar_type());
  if (type == kTypes.end()) {
    throw std::invalid_argument(std::string("cannot reduce tensors of type ") +
                                c10::toString(tensor.scalar_type()));
  }
  self.all_reduce({tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), type->second},
                  kReductions.at(reduction));
}

void broadcast(Participant& self, const at::Tensor& tensor, std::size_t root) {
  check_memory(tensor);
  self.broadcast({static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()}, root);
}

py::bytes broadcast_bytes(Participant& self, const std::string& bytes, std::size_t root) {
  std::string result;
  {
    const py::gil_scoped_release no_gil;
    result = self.broadcast_text(bytes, root);
  }
  return {result};
}

py::list gather_bytes(Participant& self, const std::string& bytes) {
  std::vector<std::string> all;
  {
    const py::gil_scoped_release no_gil;
    all = self.all_gather(bytes);
  }
  py::list list;
  for (const std::string& part : all) {
    list.append(py::bytes(part));
  }
  return list;
}

std::shared_ptr<float[]> pinned_memory(std::size_t floats) {
  const auto zeros = std::make_shared<const at::Tensor>(
      at::empty({static_cast<std::int64_t>(floats)},
                at::TensorOptions(at::kFloat).pinned_memory(true))
          .zero_());
  return {zeros, zeros->data_ptr<float>()};
}

// Calls a Python function from a thread that need not have the GIL, and drops it under the GIL.
template <class... Arguments>
std::function<void(Arguments...)> with_gil(const py::object& function) {
  if (function.is_none()) {
    return {};
  }
  const std::shared_ptr<py::object> shared(new py::object(function), [](py::object* object) {
    const py::gil_scoped_acquire gil;
    delete object;
  });
  return [shared](Arguments... arguments) {
    const py::gil_scoped_acquire gil;
    (*shared)(arguments...);
  };
}

std::unique_ptr<Reducer> make_reducer(std::vector<at::Tensor> parameters, double scale,
                                      const py::object& update, const py::object& after_backward) {
  return std::make_unique<Reducer>(std::move(parameters), scale,
                                   with_gil<const Reducer::Layers&>(update),
                                   with_gil<>(after_backward));
}

void place(Reducer& reducer, std::shared_ptr<GradientExchange> exchange,
           const std::vector<std::tuple<std::size_t, std::int64_t, std::int64_t>>& places,
           std::int64_t active) {
  std::vector<Place> all;
  for (const auto& [layer, offset, flag] : places) {
    all.push_back({layer, offset, flag});
  }
  reducer.place(std::move(exchange), std::move(all), active);
}

std::vector<std::tuple<std::size_t, bool, double>> marks_of(const Reducer& reducer) {
  std::vector<std::tuple<std::size_t, bool, double>> marks;
  for (const Reducer::Mark& mark : reducer.marks()) {
    marks.emplace_back(mark.parameter, mark.is_gradient, mark.seconds);
  }
  return marks;
}

template <class T>
T valid(sluice::Result<T> result) {
  if (!result) {
    throw std::invalid_argument(result.error().message());
  }
  return *std::move(result);
}

void write_profile(const std::string& profile, const std::string& path) {
  const auto written =
      sluice::write_profile(path, valid(sluice::parse_profile(profile, "the profile")));
  if (!written) {
    throw std::runtime_error(written.error().message());
  }
}

// The profile is JSON, the cluster TOML, and the result JSON.
std::string simulate(const std::string& profile, const std::string& cluster,
                     const std::string& preset, std::int64_t iterations, const std::string& trace) {
  return valid(sluice::simulate_preset(preset, valid(sluice::parse_profile(profile, "the profile")),
                                       valid(sluice::parse_cluster(cluster, "the cluster")),
                                       iterations, trace))
      .dump();
}

std::map<std::string, double> counts_of(const Reducer& reducer) {
  const auto& gate = reducer.counts();
  std::map<std::string, double> counts{{"stops", static_cast<double>(gate.stops)},
                                       {"waits", static_cast<double>(gate.waits)},
                                       {"updates", static_cast<double>(gate.updates)},
                                       {"sent_in_backward", static_cast<double>(gate.early)},
                                       {"sent_in_step", static_cast<double>(gate.late)},
                                       {"waited_s", gate.waited_seconds}};
  if (reducer.placed()) {
    const sluice::Counters sent = reducer.exchange().counters();
    counts["steps"] = static_cast<double>(reducer.exchange().steps());
    counts["layers"] = static_cast<double>(reducer.exchange().layers().size());
    counts["messages"] = static_cast<double>(sent.messages);
    counts["bytes"] = static_cast<double>(sent.payload_bytes);
    counts["chunks"] = static_cast<double>(sent.chunks);
    counts["overtakings"] = static_cast<double>(sent.egress_overtakings);
    counts["gradients_summed_locally"] = static_cast<double>(sent.local_sums);
  }
  return counts;
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  m.def("presets", &sluice::exchange_presets);
  m.def("write_profile", &write_profile);
  m.def("simulate", &simulate, NoGil());
  m.def("save_checkpoint", &sluice::python::save_checkpoint, NoGil());
  m.def("load_checkpoint", &sluice::python::load_checkpoint, NoGil());

  py::class_<Participant, std::shared_ptr<Participant>>(m, "Participant")
      .def(py::init<>(), NoGil())
      .def_property_readonly("rank", &Participant::rank)
      .def_property_readonly("size", &Participant::size)
      .def_property_readonly("local_rank", &Participant::local_rank)
      .def_property_readonly("local_size", &Participant::local_size)
      .def("barrier", &Participant::barrier, NoGil())
      .def("all_reduce", &all_reduce, NoGil())
      .def("broadcast", &broadcast, NoGil())
      .def("broadcast_bytes", &broadcast_bytes)
      .def("gather_bytes", &gather_bytes)
      .def("join", &Participant::join, NoGil())
      .def("end_join", &Participant::end_join, NoGil())
      .def("leave", &Participant::leave, NoGil())
      .def("abort", &Participant::abort, NoGil());

  py::class_<GradientExchange, std::shared_ptr<GradientExchange>>(m, "GradientExchange")
      .def(py::init([](const std::shared_ptr<Participant>& participant, const std::string& preset,
                       const std::string& codec, const std::vector<std::string>& names,
                       const std::vector<std::int64_t>& sizes, const std::string& run,
                       const std::string& trace, const std::string& name, std::int64_t batch,
                       bool joins_layers, bool pinned) {
             const GradientExchange::Options options{
                 .preset = preset,
                 .codec = value_of(sluice::kCodecNames, codec).value(),
                 .joins_layers = joins_layers,
                 .record = {.run = run, .trace = trace, .name = name, .batch = batch},
                 .allocate = pinned ? pinned_memory : nullptr};
             // A reducer keeps the exchange longer than Python does, and it needs the participant.
             return std::shared_ptr<GradientExchange>(
                 new GradientExchange(*participant, options, names, sizes),
                 [participant](const GradientExchange* exchange) { delete exchange; });
           }),
           NoGil());

  py::class_<Reducer>(m, "Reducer")
      .def(py::init(&make_reducer))
      .def("marks", &marks_of)
      .def("place", &place)
      .def("set_sending", &Reducer::set_sending)
      .def("expect_passes", &Reducer::expect_passes)
      .def("discard", &Reducer::discard, NoGil())
      .def("finish", &Reducer::finish, NoGil())
      .def("step_aside", &Reducer::step_aside, NoGil())
      .def("arm", &Reducer::arm)
      .def("due", &Reducer::due)
      .def("update_all", &Reducer::update_all, NoGil())
      .def("wait_all", &Reducer::wait_all, NoGil())
      .def("lend_sums", &Reducer::lend_sums)
      .def("take_back", &Reducer::take_back)
      .def("store_sums", &Reducer::store_sums, NoGil())
      .def("counts", &counts_of, NoGil());
}
