#include "torch/layout.h"

#include <unordered_map>

namespace sluice {
namespace {

struct Group {
  std::string name;
  std::vector<std::size_t> parameters;
  std::int64_t elements = 0;
  bool placed = false;
};

// Counted from the beginning of the group.
Matrix matrix_of(const Group& group, const std::vector<ParameterSize>& parameters) {
  Matrix largest;
  std::int64_t begin = 0;
  for (const std::size_t p : group.parameters) {
    const auto& [name, elements, rows] = parameters[p];
    if (rows > 1 && elements > rows && elements > largest.range().size()) {
      largest = {begin, rows, elements / rows};
    }
    begin += elements;
  }
  return largest;
}

std::string owner_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "model" : parameter.substr(0, dot);
}

}  // namespace

Layout make_layout(const std::vector<ParameterSize>& parameters,
                   const std::vector<std::size_t>& reads) {
  std::vector<Group> groups;
  std::vector<std::size_t> group_of;
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string owner = owner_of(parameters[i].name);
    const auto [found, is_new] = index.try_emplace(owner, groups.size());
    if (is_new) {
      groups.push_back({owner, {}, 0, false});
    }
    group_of.push_back(found->second);
    groups[found->second].parameters.push_back(i);
    groups[found->second].elements += parameters[i].elements;
  }

  Layout layout;
  std::vector<std::string> names;
  std::vector<std::int64_t> sizes;
  std::vector<Matrix> matrices;
  const auto place = [&](Group& group) {
    if (group.placed) {
      return;
    }
    group.placed = true;
    layout.layer_of.insert(layout.layer_of.end(), group.parameters.size(), LayerId(names.size()));
    layout.order.insert(layout.order.end(), group.parameters.begin(), group.parameters.end());
    names.push_back(group.name);
    sizes.push_back(group.elements);
    matrices.push_back(matrix_of(group, parameters));
  };
  for (const std::size_t parameter : reads) {
    place(groups[group_of[parameter]]);
  }
  for (Group& group : groups) {
    place(group);
  }
  layout.layers = lay_out(names, sizes);
  for (std::size_t l = 0; l < matrices.size(); ++l) {
    Layer& layer = layout.layers[l];
    layer.matrix = matrices[l];
    layer.matrix.begin += layer.range.begin;
  }
  return layout;
}

}  // namespace sluice
