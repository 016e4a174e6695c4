#include "torch/layout.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::vector<std::string> names_of(const Layout& layout) {
  std::vector<std::string> names;
  for (const Layer& layer : layout.layers) {
    names.push_back(layer.name);
  }
  return names;
}

TEST(LayoutTest, AModuleIsALayer) {
  const Layout layout = make_layout(
      {{"a.weight", 6}, {"a.bias", 2}, {"b.inner.weight", 5}, {"b.weight", 1}, {"scale", 3}}, {});
  EXPECT_EQ(names_of(layout), (std::vector<std::string>{"a", "b.inner", "b", "model"}));
  EXPECT_EQ(layout.layers[0].range, (Range{0, 8}));
  EXPECT_EQ(layout.layers[3].range, (Range{14, 17}));
}

TEST(LayoutTest, LayersStandInTheOrderOfFirstRead) {
  const Layout layout = make_layout(
      {{"a.weight", 1}, {"b.weight", 2}, {"b.bias", 3}, {"c.weight", 4}}, {3, 2, 3, 1, 0});
  EXPECT_EQ(names_of(layout), (std::vector<std::string>{"c", "b", "a"}));
  EXPECT_EQ(layout.order, (std::vector<std::size_t>{3, 1, 2, 0}));
  EXPECT_EQ(layout.layer_of,
            (std::vector<LayerId>{LayerId(0), LayerId(1), LayerId(1), LayerId(2)}));
}

TEST(LayoutTest, TheLargestMatrixOfALayerIsKnown) {
  const Layout layout = make_layout({{"a.bias", 4},
                                     {"a.small", 6, 2},
                                     {"a.weight", 12, 4},
                                     {"b.weight", 9, 9},
                                     {"c.weight", 9, 1},
                                     {"d.weight", 9}},
                                    {5, 0});
  EXPECT_EQ(names_of(layout), (std::vector<std::string>{"d", "a", "b", "c"}));
  EXPECT_EQ(layout.layers[1].matrix, (Matrix{9 + 10, 4, 3}));
  for (const std::size_t vector : {0, 2, 3}) {
    EXPECT_EQ(layout.layers[vector].matrix.rows, 0);
  }
}

TEST(LayoutTest, WhatIsNeverReadComesLast) {
  const Layout layout = make_layout({{"spare.weight", 1}, {"used.weight", 1}}, {1});
  EXPECT_EQ(names_of(layout), (std::vector<std::string>{"used", "spare"}));
}

// A parent may own parameters registered before and after those of its children.
TEST(LayoutTest, ALayerIsOneChunkEvenIfRegisteredInParts) {
  const Layout layout = make_layout({{"a.first", 1}, {"b.weight", 2}, {"a.second", 4}}, {1});
  EXPECT_EQ(names_of(layout), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(layout.order, (std::vector<std::size_t>{1, 0, 2}));
  EXPECT_EQ(layout.layers[1].range, (Range{2, 7}));
}

}  // namespace
}  // namespace sluice
