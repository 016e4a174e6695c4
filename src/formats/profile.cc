#include "formats/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "formats/document.h"

namespace sluice {
namespace {

// Far above any real use, and low enough that sums over layers fit their types.
constexpr std::int64_t kMaxParams = 1'000'000'000'000;
constexpr std::int64_t kMaxBatch = 1'000'000'000;

// Rows and columns are given together, or not at all.
Matrix read_matrix(Fields& fields, std::int64_t params) {
  const Form count = Form::integer(0, kMaxParams);
  const Matrix matrix{.begin = fields.get<std::int64_t>("matrix_begin", count, 0),
                      .rows = fields.get<std::int64_t>("rows", count, 0),
                      .columns = fields.get<std::int64_t>("columns", count, 0)};
  const bool fits = matrix.columns == 0
                        ? matrix.rows == 0 && matrix.begin == 0
                        : matrix.rows > 0 && matrix.begin <= params &&
                              matrix.rows <= (params - matrix.begin) / matrix.columns;
  if (!fits) {
    fields.complain("rows, columns",
                    fmt::format("are {} and {}, expected a matrix within the {} parameters of the "
                                "layer, from matrix_begin on",
                                matrix.rows, matrix.columns, params));
    return {};
  }
  return matrix;
}

LayerProfile read_layer(Fields& fields) {
  const Form time = Form::number(0, kLongestPassUs);
  LayerProfile layer;
  layer.name = fields.get<std::string>("name", Form::text());
  layer.params = fields.get<std::int64_t>("params", Form::integer(0, kMaxParams));
  layer.forward = from_us(fields.get<double>("forward_us", time));
  layer.backward = from_us(fields.get<double>("backward_us", time));
  layer.forward_iqr = from_us(fields.get<double>("forward_iqr_us", time, 0));
  layer.backward_iqr = from_us(fields.get<double>("backward_iqr_us", time, 0));
  layer.matrix = read_matrix(fields, layer.params);
  return layer;
}

// The layer's index, and its name if it has one.
std::string place_of(const Json& layer, std::size_t index) {
  std::string place = fmt::format("layers[{}]", index);
  if (layer.is_object() && layer.contains("name") && layer["name"].is_string()) {
    place += fmt::format(" {}", layer["name"].dump());
  }
  return place;
}

std::vector<LayerProfile> read_layers(Fields& fields) {
  std::vector<LayerProfile> layers;
  const Json* list = fields.required("layers", Form::list());
  if (list == nullptr) {
    return layers;
  }
  std::int64_t params = 0;
  Duration time{0};
  for (const Json& entry : *list) {
    Fields part(entry, fields.where() + ": " + place_of(entry, layers.size()));
    const LayerProfile& layer = layers.emplace_back(read_layer(part));
    params += layer.params;
    time += layer.forward + layer.backward;
    if (params > kMaxParams) {
      part.complain("params", fmt::format("brings the sum of all layers to {}, expected at most {}",
                                          params, kMaxParams));
    }
    if (time > from_us(kLongestPassUs)) {
      part.complain("forward_us, backward_us",
                    fmt::format("bring the sum of all layers to {} us, expected at most {} us",
                                to_us(time), kLongestPassUs));
    }
    if (const auto done = part.done(); !done) {
      fields.merge(done);
      break;
    }
  }
  return layers;
}

// The double nearest to the whole picoseconds: short to print, and reads back to the same time.
double exact_us(Duration time) { return static_cast<double>(time.count()) / 1e6; }

nlohmann::ordered_json to_json(const LayerProfile& layer) {
  nlohmann::ordered_json json{{"name", layer.name},
                              {"params", layer.params},
                              {"forward_us", exact_us(layer.forward)},
                              {"backward_us", exact_us(layer.backward)}};
  if (layer.forward_iqr.count() > 0 || layer.backward_iqr.count() > 0) {
    json["forward_iqr_us"] = exact_us(layer.forward_iqr);
    json["backward_iqr_us"] = exact_us(layer.backward_iqr);
  }
  if (layer.matrix.rows > 0) {
    json["rows"] = layer.matrix.rows;
    json["columns"] = layer.matrix.columns;
  }
  if (layer.matrix.begin > 0) {
    json["matrix_begin"] = layer.matrix.begin;
  }
  return json;
}

}  // namespace

Duration Profile::forward() const {
  Duration sum{0};
  for (const LayerProfile& layer : layers) {
    sum += layer.forward;
  }
  return sum;
}

Duration Profile::backward() const {
  Duration sum{0};
  for (const LayerProfile& layer : layers) {
    sum += layer.backward;
  }
  return sum;
}

std::vector<Layer> Profile::layout() const {
  std::vector<std::string> names;
  std::vector<std::int64_t> params;
  for (const LayerProfile& layer : layers) {
    names.push_back(layer.name);
    params.push_back(layer.params);
  }
  std::vector<Layer> laid_out = lay_out(names, params);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    laid_out[l].matrix = layers[l].matrix;
    laid_out[l].matrix.begin += laid_out[l].range.begin;
  }
  return laid_out;
}

LayerProfile untimed(const Layer& layer) {
  LayerProfile profile{.name = layer.name, .params = layer.range.size()};
  if (layer.matrix.rows > 0) {
    profile.matrix = layer.matrix;
    profile.matrix.begin -= layer.range.begin;
  }
  return profile;
}

Profile scaled(Profile profile, double time_scale, double param_scale) {
  const auto stretched = [&](Duration time) { return from_us(to_us(time) * time_scale); };
  for (LayerProfile& layer : profile.layers) {
    layer.forward = stretched(layer.forward);
    layer.backward = stretched(layer.backward);
    layer.forward_iqr = stretched(layer.forward_iqr);
    layer.backward_iqr = stretched(layer.backward_iqr);
    if (layer.params > 0) {
      const auto params = std::llround(static_cast<double>(layer.params) * param_scale);
      layer.params = std::max<std::int64_t>(1, params);
      const auto fewer = [&](std::int64_t count) {
        return static_cast<std::int64_t>(static_cast<double>(count) * param_scale);
      };
      layer.matrix =
          fewer(layer.matrix.rows) > 0
              ? Matrix{fewer(layer.matrix.begin), fewer(layer.matrix.rows), layer.matrix.columns}
              : Matrix{};
    }
  }
  return profile;
}

Profile accumulated(Profile profile, std::int64_t micro_batches) {
  if (!profile.layers.empty()) {
    profile.layers.back().forward += profile.compute() * (micro_batches - 1);
  }
  profile.batch *= micro_batches;
  return profile;
}

Result<Profile> parse_profile(const std::string& text, const std::string& source) {
  const auto document = parse_json(text, source);
  if (!document) {
    return document.error();
  }
  Fields fields(*document, source);
  Profile profile;
  profile.name = fields.get<std::string>("name", Form::text());
  profile.batch = fields.get<std::int64_t>("batch", Form::integer(1, kMaxBatch));
  profile.device = fields.get<std::string>("device", Form::text(), "");
  profile.estimated = fields.get<bool>("estimated", Form::on_or_off(), false);
  profile.source = fields.get<std::string>("source", Form::text(), "");
  profile.layers = read_layers(fields);
  if (const auto done = fields.done(); !done) {
    return done.error();
  }
  return profile;
}

Result<Profile> read_profile(const std::string& path) {
  const auto text = read_file(path);
  return text ? parse_profile(*text, path) : text.error();
}

Result<void> write_profile(const std::string& path, const Profile& profile) {
  nlohmann::ordered_json json{
      {"name", profile.name},     {"batch", profile.batch},
      {"device", profile.device}, {"estimated", profile.estimated},
      {"source", profile.source}, {"layers", nlohmann::ordered_json::array()}};
  for (const LayerProfile& layer : profile.layers) {
    json["layers"].push_back(to_json(layer));
  }
  return write_file(path, json.dump(1) + "\n");
}

}  // namespace sluice
